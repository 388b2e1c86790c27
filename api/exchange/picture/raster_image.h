// Draws a raster with axes; docs/exports.md describes the pixel layout.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/aggregate/raster.h"
#include "api/exchange/picture/image.h"

namespace tt::exchange {

// Size of the image, and the plot area in it. The first row of y is at the bottom. Plot column
// px shows raster column px * n / kPlotWidth of n columns; rows likewise.
inline constexpr std::uint32_t kImageWidth = 1400, kImageHeight = 720;
inline constexpr Box kPlot{.x = 100, .y = 40, .width = 1280, .height = 640};

// White for 0; otherwise a blue interpolated linearly by value / largest.
Colour colour_of(double value, double largest);

Image draw_raster(const Raster& raster, std::string_view title);

}  // namespace tt::exchange
