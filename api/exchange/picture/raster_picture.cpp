#include "api/exchange/picture/raster_picture.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <string>

#include "analysis/common/figure_text.h"

namespace tt::exchange {
namespace {

constexpr Colour kLeast{222, 235, 247}, kMost{8, 48, 107};
constexpr std::uint32_t kTick = 4;            // pixels
constexpr std::uint32_t kBetweenLabels = 14;  // minimum distance of row labels
constexpr std::uint64_t kTicks = 5;           // maximum ticks of a numeric axis

std::uint32_t width_of(std::string_view words) {
  return static_cast<std::uint32_t>(words.size()) * Picture::kLetterWidth;
}

std::string number_text(Axis axis, std::int64_t number) {
  if (axis == Axis::Time) return time_text(static_cast<double>(number));
  if (is_bytes(axis)) return bytes_text(static_cast<double>(number));
  return std::to_string(number);
}

// Calls `label(where, words)`; `where` is the position on the axis from 0 to 1.
template <class Label>
void for_each_label(const RasterAxis& axis, std::uint32_t most, Label label) {
  if (!axis.rows.empty()) {
    const std::size_t n = axis.rows.size(), each = n / (most + 1) + 1;
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
    if (at == length && axis.axis != Axis::Time && !is_bytes(axis.axis)) continue;
    label(static_cast<double>(at) / static_cast<double>(length),
          number_text(axis.axis,
                      static_cast<std::int64_t>(static_cast<std::uint64_t>(axis.range.from) + at)));
  }
}

void draw_axes(Picture& picture, const Raster& raster) {
  const std::uint32_t bottom = kPlot.y + kPlot.height;
  picture.fill({.x = kPlot.x - 1, .y = kPlot.y, .width = 1, .height = kPlot.height + 1},
               Picture::kInk);
  picture.fill({.x = kPlot.x - 1, .y = bottom, .width = kPlot.width + 1, .height = 1},
               Picture::kInk);
  for_each_label(
      raster.y, kPlot.height / kBetweenLabels, [&](double where, std::string_view words) {
        const auto y = bottom - static_cast<std::uint32_t>(where * kPlot.height);
        picture.fill({.x = kPlot.x - kTick, .y = y, .width = kTick, .height = 1}, Picture::kInk);
        words = words.substr(0, (kPlot.x - 2 * kTick) / Picture::kLetterWidth);
        picture.write(kPlot.x - 2 * kTick - width_of(words), y - Picture::kLetterHeight / 2, words);
      });
  for_each_label(
      raster.x, static_cast<std::uint32_t>(kTicks), [&](double where, std::string_view words) {
        const auto x = kPlot.x + static_cast<std::uint32_t>(where * kPlot.width);
        picture.fill({.x = x, .y = bottom, .width = 1, .height = kTick}, Picture::kInk);
        const std::uint32_t wide = width_of(words);
        picture.write(std::min(x - wide / 2, kPictureWidth - wide), bottom + 2 * kTick, words);
      });
}

}  // namespace

Colour colour_of(double value, double largest) {
  if (!(value > 0) || !(largest > 0)) return Picture::kWhite;
  const double part = std::min(value / largest, 1.0);
  const auto mixed = [&](std::uint8_t from, std::uint8_t to) {
    return static_cast<std::uint8_t>(std::lround(from + part * (to - from)));
  };
  return {mixed(kLeast.red, kMost.red), mixed(kLeast.green, kMost.green),
          mixed(kLeast.blue, kMost.blue)};
}

Picture picture_of(const Raster& raster, std::string_view title) {
  Picture picture(kPictureWidth, kPictureHeight);
  std::string words(title);
  words += raster.largest > 0 ? std::format(", darkest: {}", bytes_text(raster.largest))
                              : std::string(": nothing recorded");
  picture.write(kPlot.x, kPlot.y / 2 - Picture::kLetterHeight / 2, words);
  draw_axes(picture, raster);
  if (raster.cells.empty()) return picture;
  for (std::uint32_t y = 0; y < kPlot.height; ++y) {
    const std::size_t row = std::size_t{y} * raster.y.pixels / kPlot.height;
    for (std::uint32_t x = 0; x < kPlot.width; ++x) {
      const std::size_t column = std::size_t{x} * raster.x.pixels / kPlot.width;
      const double value = raster.cells[row * raster.x.pixels + column];
      if (value > 0) {
        picture.fill(
            {.x = kPlot.x + x, .y = kPlot.y + kPlot.height - 1 - y, .width = 1, .height = 1},
            colour_of(value, raster.largest));
      }
    }
  }
  return picture;
}

}  // namespace tt::exchange
