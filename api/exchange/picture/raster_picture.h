// A raster as a picture with its axes: docs/exports.md says where its pixels are.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/aggregate/raster.h"
#include "api/exchange/picture/picture.h"

namespace tt::exchange {

// Of the picture, and of the plot in it; y's first row is the lowest. Column px of the
// plot shows column px * n / kPlotWidth of the raster's n, and so do rows.
inline constexpr std::uint32_t kPictureWidth = 1400, kPictureHeight = 720;
inline constexpr Box kPlot{.x = 100, .y = 40, .width = 1280, .height = 640};

// White is nothing; else between two blues, in proportion to the largest cell.
Colour colour_of(double value, double largest);

Picture picture_of(const Raster& raster, std::string_view title);

}  // namespace tt::exchange
