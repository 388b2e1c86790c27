// A run as the frames of a video: a map of the session whose cells get their colour when an op
// touches them, with the running op, the clock, the tokens and the scale as text.
//
// The steps are played one after the other, without the pauses between them. The texts are
// subtitles in the format ASS (Advanced SubStation Alpha), which the encoder draws into the
// pictures with the fonts of the system: tokens can be in any script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/aggregate/raster.h"
#include "api/exchange/picture/image.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {

inline constexpr std::uint32_t kMaxFrames = 100'000;

struct FilmOptions {
  Axis map = Axis::Layer;  // the rows of the map; the columns are the steps
  std::uint32_t width = 1280, height = 720, frames_per_second = 30;
  std::optional<double> speed{};  // relative to the run; none: the film lasts kSeconds
  Range<std::uint64_t> steps{};
  static constexpr double kSeconds = 20;
};

// One thread.
class Film {
 public:
  // Errors: no step has times; more than kMaxFrames.
  static std::expected<Film, TraceError> make(const SessionReader& reader,
                                              const FilmOptions& options,
                                              const ContinueCheck& keep_going);

  std::size_t frames() const { return moments_.size(); }
  const std::string& subtitles() const { return subtitles_; }
  // RGB, 8 bits per channel, by row. Valid until the next call; `frame` must not decrease.
  std::span<const exchange::Colour> picture(std::size_t frame);

 private:
  // What a frame shows: the ops of the step that have begun. -1: none, or its times are not
  // recorded.
  struct Moment {
    std::uint64_t step = 0;
    std::size_t series = 0;  // of rows_; its size: none
    std::int64_t op = -1;
    bool running = false;  // the last one has not ended
  };
  struct Builder;
  Film() : base_(0, 0), shown_(0, 0) {}
  // In pixels of the plot, [from, to).
  using Pixels = Range<std::uint32_t>;
  Pixels columns_of(std::uint64_t step) const;
  Pixels rows_of(const Range<std::int64_t>& rows) const;
  void draw_cells(Pixels columns, Pixels rows, bool played);

  Raster raster_;
  exchange::Box plot_;
  std::uint32_t line_ = 1;  // width of lines, pixels
  std::vector<Moment> moments_;
  std::vector<std::vector<std::vector<Range<std::int64_t>>>> rows_;  // by series and op
  std::string subtitles_;
  exchange::Image base_, shown_;  // what was played; the same with the position
  std::uint64_t step_ = 0;        // that base_ shows, with its first `ops_` ops
  std::int64_t ops_ = 0;
};

}  // namespace tt::cli
