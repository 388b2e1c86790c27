#include "api/exchange/run_folder/run_pictures.h"

#include <algorithm>
#include <cstdint>

#include "analysis/aggregate/raster.h"
#include "api/exchange/picture/raster_picture.h"
#include "api/exchange/rows/byte_sink.h"

namespace tt::exchange {
namespace {

struct RunPicture {
  const char* file;
  const char* title;
  Axis x, y;
};
constexpr RunPicture kPictures[] = {
    {"heatmap_token_layer.png", "bytes touched, token by layer of the op", Axis::Token,
     Axis::Layer},
    {"timeline_offset.png", "bytes touched, time by offset in the files", Axis::Time, Axis::File},
};

// Axis range that the steps cover. Empty if there are no steps.
Stretch<std::int64_t> extent_of(const SessionIndex& index, Stretch<std::uint64_t> steps,
                                Axis axis) {
  Stretch<std::int64_t> all{INT64_MAX, INT64_MIN};
  for (std::uint64_t i = steps.from; i < steps.to; ++i) {
    const IndexedStep& step = index.steps()[i];
    const bool time = axis == Axis::Time;
    all.from =
        std::min(all.from, time ? step.begin.v : static_cast<std::int64_t>(token_begin(step)));
    all.to = std::max(all.to, time ? std::max(step.begin.v, step.end.v)
                                   : static_cast<std::int64_t>(token_end(step)));
  }
  return all.from < all.to ? all : Stretch<std::int64_t>{};
}

}  // namespace

Written write_run_pictures(const SessionIndex& index, Stretch<std::uint64_t> steps,
                           const std::filesystem::path& folder, const KeepGoing& keep_going) {
  for (const RunPicture& wanted : kPictures) {
    RasterQuery query{.x = {.axis = wanted.x, .pixels = kPlot.width},
                      .y = {.axis = wanted.y, .pixels = kPlot.height},
                      .value = Value::Touched,
                      .filter = {}};
    query.x.range = extent_of(index, steps, wanted.x);
    query.filter.steps = steps;
    const auto found = raster(index, query, keep_going);
    if (!found) return std::unexpected(found.error());
    const auto png = picture_of(*found, wanted.title).png();
    if (!png) return std::unexpected(png.error());
    auto file = OutputFile::create(folder / wanted.file);
    if (!file) return std::unexpected(file.error());
    if (Written done = file->write(*png); !done) return done;
    if (Written done = file->commit(); !done) return done;
  }
  return {};
}

}  // namespace tt::exchange
