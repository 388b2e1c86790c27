#include "api/exchange/run_folder/run_images.h"

#include <algorithm>
#include <cstdint>

#include "analysis/aggregate/raster.h"
#include "api/exchange/picture/raster_image.h"
#include "api/exchange/rows/byte_sink.h"

namespace tt::exchange {
namespace {

struct RunImage {
  const char* file;
  const char* title;
  Axis x, y;
};
constexpr RunImage kImages[] = {
    {"heatmap_token_layer.png", "bytes touched, token by layer of the op", Axis::Token,
     Axis::Layer},
    {"timeline_offset.png", "bytes touched, time by offset in the files", Axis::Time, Axis::File},
};

// Axis range that the steps cover. Empty if there are no steps.
Range<std::int64_t> extent_of(const SessionIndex& index, Range<std::uint64_t> steps, Axis axis) {
  Range<std::int64_t> all{INT64_MAX, INT64_MIN};
  for (std::uint64_t i = steps.from; i < steps.to; ++i) {
    const IndexedStep& step = index.steps()[i];
    const bool time = axis == Axis::Time;
    all.from =
        std::min(all.from, time ? step.begin.v : static_cast<std::int64_t>(token_begin(step)));
    all.to = std::max(all.to, time ? std::max(step.begin.v, step.end.v)
                                   : static_cast<std::int64_t>(token_end(step)));
  }
  return all.from < all.to ? all : Range<std::int64_t>{};
}

}  // namespace

WriteResult write_run_images(const SessionIndex& index, Range<std::uint64_t> steps,
                             const std::filesystem::path& folder, const ContinueCheck& keep_going) {
  for (const RunImage& image : kImages) {
    RasterQuery query{.x = {.axis = image.x, .pixels = kPlot.width},
                      .y = {.axis = image.y, .pixels = kPlot.height},
                      .value = Value::Touched,
                      .filter = {}};
    query.x.range = extent_of(index, steps, image.x);
    query.filter.steps = steps;
    const auto found = raster(index, query, keep_going);
    if (!found) return std::unexpected(found.error());
    const auto png = draw_raster(*found, image.title).png();
    if (!png) return std::unexpected(png.error());
    auto file = OutputFile::create(folder / image.file);
    if (!file) return std::unexpected(file.error());
    if (WriteResult done = file->write(*png); !done) return done;
    if (WriteResult done = file->commit(); !done) return done;
  }
  return {};
}

}  // namespace tt::exchange
