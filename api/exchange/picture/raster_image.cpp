#include "api/exchange/picture/raster_image.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <string>

#include "analysis/common/format_units.h"

namespace tt::exchange {
namespace {

constexpr Colour kMinColour{222, 235, 247}, kMaxColour{8, 48, 107};
constexpr std::uint32_t kTick = 4;              // pixels
constexpr std::uint32_t kMinLabelSpacing = 14;  // minimum distance of row labels
constexpr std::uint64_t kTicks = 5;             // maximum ticks of a numeric axis

std::uint32_t width_of(std::string_view words) {
  return static_cast<std::uint32_t>(words.size()) * Image::kLetterWidth;
}

std::string number_text(Axis axis, std::int64_t number) {
  if (axis == Axis::Time) return format_duration(static_cast<double>(number));
  if (is_byte_axis(axis)) return format_bytes(static_cast<double>(number));
  return std::to_string(number);
}

// Calls `label(where, words)`; `where` is the position on the axis from 0 to 1.
template <class Label>
void for_each_label(const RasterAxis& axis, std::uint32_t max_labels, Label label) {
  if (!axis.rows.empty()) {
    const std::size_t n = axis.rows.size(), each = n / (max_labels + 1) + 1;
    for (std::size_t i = 0; i < n; i += each)
      label((static_cast<double>(i) + 0.5) / static_cast<double>(n), axis.rows[i]);
    return;
  }
  // Ranges of damaged files may exceed a signed integer.
  const std::uint64_t length =
      static_cast<std::uint64_t>(axis.range.to) - static_cast<std::uint64_t>(axis.range.from);
  const std::uint64_t ticks = std::min(kTicks, length);
  for (std::uint64_t i = 0; i <= ticks && ticks > 0; ++i) {
    const std::uint64_t at = length / ticks * i + length % ticks * i / ticks;
    // Time and byte axes label their end; for counts the end is exclusive and not labelled.
    if (at == length && axis.axis != Axis::Time && !is_byte_axis(axis.axis)) continue;
    label(static_cast<double>(at) / static_cast<double>(length),
          number_text(axis.axis,
                      static_cast<std::int64_t>(static_cast<std::uint64_t>(axis.range.from) + at)));
  }
}

void draw_axes(Image& image, const Raster& raster) {
  const std::uint32_t bottom = kPlot.y + kPlot.height;
  image.fill({.x = kPlot.x - 1, .y = kPlot.y, .width = 1, .height = kPlot.height + 1}, Image::kInk);
  image.fill({.x = kPlot.x - 1, .y = bottom, .width = kPlot.width + 1, .height = 1}, Image::kInk);
  for_each_label(
      raster.y, kPlot.height / kMinLabelSpacing, [&](double where, std::string_view words) {
        const auto y = bottom - static_cast<std::uint32_t>(where * kPlot.height);
        image.fill({.x = kPlot.x - kTick, .y = y, .width = kTick, .height = 1}, Image::kInk);
        words = words.substr(0, (kPlot.x - 2 * kTick) / Image::kLetterWidth);
        image.write(kPlot.x - 2 * kTick - width_of(words), y - Image::kLetterHeight / 2, words);
      });
  for_each_label(
      raster.x, static_cast<std::uint32_t>(kTicks), [&](double where, std::string_view words) {
        const auto x = kPlot.x + static_cast<std::uint32_t>(where * kPlot.width);
        image.fill({.x = x, .y = bottom, .width = 1, .height = kTick}, Image::kInk);
        const std::uint32_t wide = width_of(words);
        image.write(std::min(x - wide / 2, kImageWidth - wide), bottom + 2 * kTick, words);
      });
}

}  // namespace

Colour colour_of(double value, double largest) {
  if (!(value > 0) || !(largest > 0)) return Image::kWhite;
  const double part = std::min(value / largest, 1.0);
  const auto mixed = [&](std::uint8_t from, std::uint8_t to) {
    return static_cast<std::uint8_t>(std::lround(from + part * (to - from)));
  };
  return {mixed(kMinColour.red, kMaxColour.red), mixed(kMinColour.green, kMaxColour.green),
          mixed(kMinColour.blue, kMaxColour.blue)};
}

Image draw_raster(const Raster& raster, std::string_view title) {
  Image image(kImageWidth, kImageHeight);
  std::string words(title);
  words += raster.largest > 0 ? std::format(", darkest: {}", format_bytes(raster.largest))
                              : std::string(": nothing recorded");
  image.write(kPlot.x, kPlot.y / 2 - Image::kLetterHeight / 2, words);
  draw_axes(image, raster);
  if (raster.cells.empty()) return image;
  for (std::uint32_t y = 0; y < kPlot.height; ++y) {
    const std::size_t row = std::size_t{y} * raster.y.pixels / kPlot.height;
    for (std::uint32_t x = 0; x < kPlot.width; ++x) {
      const std::size_t column = std::size_t{x} * raster.x.pixels / kPlot.width;
      const double value = raster.cells[row * raster.x.pixels + column];
      if (value > 0) {
        image.fill({.x = kPlot.x + x, .y = kPlot.y + kPlot.height - 1 - y, .width = 1, .height = 1},
                   colour_of(value, raster.largest));
      }
    }
  }
  return image;
}

}  // namespace tt::exchange
