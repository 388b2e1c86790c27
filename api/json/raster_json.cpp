#include "api/json/raster_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "api/json/result_json.h"

namespace tt {

namespace {

static_assert(std::endian::native == std::endian::little);

bool is_count(double value) {
  constexpr double kExact = 9007199254740992.0;
  return value == std::floor(value) && std::abs(value) < kExact;
}
void append(std::string& out, double value) {
  if (value == 0) {  // the most frequent value
    out += '0';
    return;
  }
  char text[32];
  const auto end = is_count(value)
                       ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value))
                       : std::to_chars(text, text + sizeof text, value);
  out.append(text, end.ptr);
}

Json axis_json(const RasterAxis& axis) {
  Json sections = Json::array();
  for (const AxisSection& s : axis.sections)
    sections.push_back(
        {{"name", s.name}, {"from", s.range.from}, {"to", s.range.to}, {"origin", s.origin}});
  return {{"axis", to_text(axis.axis)}, {"unit", unit_of(axis.axis)},
          {"size", axis.size},          {"from", axis.range.from},
          {"to", axis.range.to},        {"pixels", axis.pixels},
          {"rows", axis.rows},          {"sections", std::move(sections)}};
}

Json figures_json(const RowFigures& figures) {
  const auto each = [&](double RowFigures::Row::* figure) {
    Json all = Json::array();
    for (const auto& row : figures.rows) all.push_back(row ? number_json(*row.*figure) : Json());
    return all;
  };
  return {{"phase", to_text(figures.phase)},
          {"units", figures.units},
          {"left_out", figures.left_out},
          {"times", figures.times ? to_json(*figures.times) : Json()},
          {"mean", each(&RowFigures::Row::mean)},
          {"p5", each(&RowFigures::Row::p5)},
          {"median", each(&RowFigures::Row::median)},
          {"p95", each(&RowFigures::Row::p95)}};
}

Json description(const Raster& raster, const RowFigures* figures) {
  Json out = {{"value", to_text(raster.value)},
              {"x", axis_json(raster.x)},
              {"y", axis_json(raster.y)},
              {"largest", number_json(raster.largest)},
              {"shown", number_json(raster.shown)},
              {"total", number_json(raster.total)},
              {"damaged_steps", raster.damaged_steps},
              {"left_out_steps", raster.left_out_steps}};
  if (figures) out["row_figures"] = figures_json(*figures);
  return out;
}

}  // namespace

// Cells are appended to the text directly: a Json value per cell would need four times the
// memory.
std::string json_of(const Raster& raster, const RowFigures* figures) {
  std::string out = text_of(description(raster, figures));
  out.back() = ',';
  out += R"("cells":[)";
  for (std::size_t y = 0; y < raster.y.pixels; ++y) {
    out += y == 0 ? "[" : ",[";
    for (std::size_t x = 0; x < raster.x.pixels; ++x) {
      if (x > 0) out += ',';
      append(out, raster.cells[y * raster.x.pixels + x]);
    }
    out += ']';
  }
  return out += "]}";
}

std::string columns_of(const Raster& raster, const RowFigures* figures) {
  const std::vector<float> cells(raster.cells.begin(), raster.cells.end());
  return raster_frame({.width = raster.x.pixels,
                       .height = raster.y.pixels,
                       .largest = raster.largest,
                       .total = raster.total},
                      cells, text_of(description(raster, figures)));
}

std::string raster_frame(const RasterHead& head, std::span<const float> cells,
                         std::string_view text) {
  struct Header {
    std::uint32_t magic = 0x31465454;  // "TTF1"
    std::uint16_t kind = 3, flags = 0;
    RasterHead head;
  };
  static_assert(sizeof(Header) == 32);
  const Header header{.head = head};
  std::string out(sizeof header + ((cells.size_bytes() + 7) & ~std::size_t{7}), '\0');
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, cells.data(), cells.size_bytes());
  return out += text;
}

}  // namespace tt
