#include "api/report/svg_chart.h"

#include <algorithm>
#include <cstddef>
#include <format>
#include <string_view>
#include <variant>

namespace tt {

namespace {

constexpr int kWidth = 720, kLabel = 230, kText = 110, kLine = 22;
constexpr int kLeft = 56, kBottom = 40, kTop = 24, kTicks = 4, kLegend = 110;
constexpr int kPlotWidth = kWidth - kLeft - 24, kPlotHeight = 220;
constexpr std::size_t kMaxLabelLength = 34;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// Keeps the end: it is the distinctive part of a tensor name.
std::string shortened(std::string_view label) {
  if (label.size() <= kMaxLabelLength) return escaped(label);
  return "\u2026" + escaped(label.substr(label.size() - kMaxLabelLength + 1));
}

std::string svg_header(const std::string& title, int height) {
  return std::format(
      "<svg role=\"img\" viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\">"
      "<title>{}</title>",
      kWidth, height, escaped(title));
}

std::string bars_svg(const BarChart& chart) {
  if (chart.bars.empty()) return {};
  double max_value = 0;
  for (const BarChart::Bar& bar : chart.bars) max_value = std::max(max_value, bar.value);
  constexpr int kBarWidth = kWidth - kLabel - kText;
  std::string svg = svg_header(chart.title, static_cast<int>(chart.bars.size()) * kLine);
  int y = 0;
  for (const BarChart::Bar& bar : chart.bars) {
    const double width = max_value > 0 ? bar.value / max_value * kBarWidth : 0;
    svg += std::format(
        "<text x=\"{}\" y=\"{}\" class=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" class=\"c0\"/>"
        "<text x=\"{:.1f}\" y=\"{}\">{}</text>",
        kLabel - 8, y + 15, shortened(bar.label), kLabel, y + 3, std::max(width, 1.0), kLine - 6,
        kLabel + width + 6, y + 15, escaped(bar.text));
    y += kLine;
  }
  return svg + "</svg>";
}

// Maps values to pixels.
struct Scale {
  double x_to = 0, y_to = 0;
  double x(double value) const { return kLeft + value / x_to * kPlotWidth; }
  double y(double value) const { return kTop + (1 - value / y_to) * kPlotHeight; }
};

std::string grid(const LineChart& chart, const Scale& scale) {
  std::string svg;
  for (int i = 0; i <= kTicks; ++i) {
    const double x = scale.x_to * i / kTicks, y = scale.y_to * i / kTicks;
    svg += std::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" class=\"end\">{:.3g}</text>"
        "<text x=\"{:.1f}\" y=\"{}\" class=\"middle\">{:.3g}</text>",
        kLeft, kLeft + kPlotWidth, scale.y(y), scale.y(y), kLeft - 6, scale.y(y) + 4, y, scale.x(x),
        kTop + kPlotHeight + 16, x);
  }
  return svg +
         std::format(
             "<text x=\"{}\" y=\"{}\" class=\"middle\">{}</text><text x=\"0\" y=\"12\">{}</text>",
             kLeft + kPlotWidth / 2, kTop + kPlotHeight + 34, escaped(chart.x_label),
             escaped(chart.y_label));
}

std::string lines_svg(const LineChart& chart) {
  Scale scale;
  for (const LineChart::Line& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      scale.x_to = std::max(scale.x_to, x);
      scale.y_to = std::max(scale.y_to, y);
    }
  }
  if (scale.x_to <= 0 || scale.y_to <= 0) return {};
  std::string svg = svg_header(chart.title, kTop + kPlotHeight + kBottom) + grid(chart, scale);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    svg += std::format("<polyline class=\"line c{}\" points=\"", i);
    for (const auto& [x, y] : chart.lines[i].points)
      svg += std::format("{:.1f},{:.1f} ", scale.x(x), scale.y(y));
    svg += "\"/>";
    if (chart.lines.size() < 2) continue;  // a single line is named by the axis
    const std::size_t legend_x = kWidth - kLegend * (chart.lines.size() - i);
    svg += std::format(
        "<rect x=\"{}\" y=\"3\" width=\"12\" height=\"12\" class=\"c{}\"/><text x=\"{}\" "
        "y=\"13\">{}</text>",
        legend_x, i, legend_x + 18, escaped(chart.lines[i].name));
  }
  return svg + "</svg>";
}

}  // namespace

std::string svg_of(const Chart& chart) {
  if (const auto* bars = std::get_if<BarChart>(&chart)) return bars_svg(*bars);
  return lines_svg(std::get<LineChart>(chart));
}

}  // namespace tt
