#include "cli/video/film.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <format>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/common/format_units.h"
#include "analysis/common/op_info.h"
#include "api/exchange/picture/raster_image.h"
#include "tracer/text/utf8.h"

namespace tt::cli {
namespace {

using exchange::Box;
using exchange::Colour;

constexpr Colour kAccent{214, 39, 40};
constexpr double kHidden = 0.15;               // of the colour of what is not yet played
constexpr std::uint32_t kLabelSpacing = 22;    // of row labels, at a height of 720 pixels
constexpr std::size_t kTextBytes = 480;        // of the tokens before the running step, at most
constexpr std::uint32_t kLegendColours = 160;  // width, at a height of 720 pixels

Colour pale(Colour colour) {
  const auto mixed = [](std::uint8_t of) {
    return static_cast<std::uint8_t>(std::lround(255 - kHidden * (255 - of)));
  };
  return {mixed(colour.red), mixed(colour.green), mixed(colour.blue)};
}

// Text of a subtitle: braces begin an override, a backslash a command.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : to_valid_utf8(text)) {
    if (c == '\n') {
      out += "\\N";
    } else if (c == '{' || c == '}') {
      out += {'\\', c};
    } else if (c == '\\') {
      out += "\\\u2060";  // an invisible character, so that the next one is not a part of a command
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

// The subtitles of a film, with one line per place and time.
class Subtitles {
 public:
  Subtitles(const FilmOptions& options, std::uint32_t frames)
      : fps_(options.frames_per_second), frames_(frames) {
    const std::uint32_t size = std::max(8U, options.height / 36);
    text_ = std::format(
        "[Script Info]\nScriptType: v4.00+\nPlayResX: {}\nPlayResY: {}\nWrapStyle: 0\n\n"
        "[V4+ Styles]\nFormat: Name, Fontname, Fontsize, PrimaryColour, OutlineColour, "
        "BorderStyle, "
        "Outline, Shadow, Alignment, MarginL, MarginR, MarginV\n"
        "Style: Default,DejaVu Sans,{},&H003C3C3C,&H00FFFFFF,1,0,0,7,{},{},0\n\n"
        "[Events]\nFormat: Layer, Start, End, Style, MarginL, MarginR, MarginV, Text\n",
        options.width, options.height, size, options.width / 40, options.width / 40);
  }

  // Shown in the frames [from, to). `corner`: the number of the key on a numeric keypad.
  void add(std::size_t from, std::size_t to, double x, double y, int corner,
           std::string_view escaped_text, double scale = 1) {
    if (from >= to || escaped_text.empty()) return;
    text_ += std::format(
        "Dialogue: 0,{},{},Default,0,0,0,{{\\an{}\\pos({:.0f},{:.0f})\\fscx{:.0f}"
        "\\fscy{:.0f}}}{}\n",
        time_of(from), time_of(to), corner, x, y, 100 * scale, 100 * scale, escaped_text);
  }
  void add_always(double x, double y, int corner, std::string_view text, double scale = 1) {
    add(0, frames_, x, y, corner, escaped(text), scale);
  }
  std::string take() { return std::move(text_); }

 private:
  // In hundredths of a second, rounded down: a frame begins at or after this time.
  std::string time_of(std::size_t frame) const {
    const std::size_t at = frame >= frames_ ? 100 * (frames_ + fps_) / fps_ : 100 * frame / fps_;
    return std::format("{}:{:02}:{:02}.{:02}", at / 360'000, at / 6'000 % 60, at / 100 % 60,
                       at % 100);
  }

  std::uint64_t fps_, frames_;
  std::string text_;
};

// A text that is shown at one place until it changes.
class Changing {
 public:
  Changing(Subtitles& subtitles, double x, double y, int corner, double scale = 1)
      : subtitles_(subtitles), x_(x), y_(y), corner_(corner), scale_(scale) {}
  void set(std::size_t frame, std::string text) {
    if (text == text_) return;
    end(frame);
    text_ = std::move(text);
    from_ = frame;
  }
  void end(std::size_t frame) { subtitles_.add(from_, frame, x_, y_, corner_, text_, scale_); }

 private:
  Subtitles& subtitles_;
  double x_, y_;
  int corner_;
  double scale_;
  std::string text_;
  std::size_t from_ = 0;
};

// The tokens before a step. The begin moves in jumps, so that the lines do not move with each
// token.
class TextBefore {
 public:
  explicit TextBefore(const std::vector<Token>& tokens) : tokens_(tokens) {}
  std::string upto(std::size_t end) {
    for (; end_ < std::min(end, tokens_.size()); ++end_) {
      bytes_ += tokens_[end_].text.size();
      if (bytes_ <= kTextBytes) continue;
      for (; begin_ < end_ && bytes_ > kTextBytes / 2; ++begin_)
        bytes_ -= tokens_[begin_].text.size();
    }
    std::string text;
    for (std::size_t i = begin_; i < end_; ++i) text += tokens_[i].text;
    return (begin_ > 0 ? "... " : "") + text;
  }

 private:
  const std::vector<Token>& tokens_;
  std::size_t begin_ = 0, end_ = 0, bytes_ = 0;
};

std::string text_of(const std::vector<Token>& tokens, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < std::min(to, tokens.size()) && text.size() < kTextBytes; ++i)
    text += tokens[i].text;
  return text;
}

std::string name_of(Axis axis) {
  if (axis == Axis::File) return "offset in the model file";
  std::string name = to_text(axis);
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string speed_text(double speed) {
  if (speed >= 0.95) return std::format("{:.3g} x the speed of the run", speed);
  return std::format("1/{:.0f} of the speed of the run", 1 / speed);
}

}  // namespace

struct Film::Builder {
  const SessionReader& reader;
  const SessionIndex& index;
  const FilmOptions& options;
  Film& film;

  double scale() const { return static_cast<double>(options.height) / 720; }
  std::uint32_t pixels(double at_720) const {
    return static_cast<std::uint32_t>(std::lround(at_720 * scale()));
  }

  // The rows of the map that each op of a series touches.
  void find_rows() {
    const TraceFilter all;
    const TraceMatcher matcher(index, all);
    const AxisRows rows(index, options.map, matcher, std::nullopt);
    for (const Series& series : index.series()) {
      auto& ops = film.rows_.emplace_back();
      for (const OutlineOp& op : series.outline->ops) {
        std::set<std::pair<std::int64_t, std::int64_t>> found;
        const auto add = [&](const OutlineAccess* access) {
          const Range<std::int64_t> of = rows.rows_of(series, op, access, kNone);
          if (of.from < of.to) found.emplace(of.from, of.to);
        };
        if (is_op_axis(options.map)) add(nullptr);
        for (std::uint32_t i = 0; i < op.accesses && !is_op_axis(options.map); ++i) {
          const OutlineAccess& access = series.outline->accesses[op.first_access + i];
          if (access.rule == kNone) add(&access);  // parts differ from step to step
        }
        auto& of_op = ops.emplace_back();
        for (const auto& [from, to] : found) of_op.push_back({from, to});
      }
    }
  }

  std::size_t series_of(const Step& step) const {
    for (std::size_t i = 0; i < index.series().size(); ++i) {
      const Series& series = index.series()[i];
      if (series.graph == step.graph && series.allocation == step.allocation) return i;
    }
    return index.series().size();
  }

  void add_labels(Subtitles& texts) const {
    const Raster& raster = film.raster_;
    const Box& plot = film.plot_;
    const double left = plot.x - 6 * scale(), bottom = plot.y + plot.height;
    const std::vector<std::string>& names = raster.y.rows;
    const std::size_t most = std::max(1U, plot.height / pixels(kLabelSpacing));
    const std::size_t each = (names.size() + most - 1) / most;
    for (std::size_t i = 0; i < names.size(); i += std::max<std::size_t>(each, 1)) {
      const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(names.size());
      // Of long names the end tells them apart.
      std::string name = to_valid_utf8(names[i]);
      if (options.map == Axis::Layer && raster.y.keys[i] == AxisRows::kNoLayerKey) name = "emb+out";
      if (name.size() > 18) name = ".." + name.substr(name.size() - 16);
      texts.add_always(left, plot.y + at * plot.height, 6, name, 0.75);
    }
    if (names.empty()) {
      const auto end = static_cast<double>(raster.y.range.to);
      texts.add_always(left, plot.y, 9, "0", 0.75);
      texts.add_always(left, bottom, 3, format_bytes(end), 0.75);
    }
    texts.add_always(plot.x, bottom + 4 * scale(), 7, std::format("step {}", raster.x.range.from),
                     0.75);
    texts.add_always(plot.x + plot.width, bottom + 4 * scale(), 9,
                     std::format("step {}", raster.x.range.to - 1), 0.75);
    const double legend = plot.y + plot.height + 14 * scale(), middle = plot.x + plot.width / 2.0,
                 half = kLegendColours * scale() / 2;
    texts.add_always(middle - half - 6 * scale(), legend, 6, "bytes touched: 0", 0.75);
    texts.add_always(middle + half + 6 * scale(), legend, 4, format_bytes(raster.largest), 0.75);
  }

  std::expected<void, TraceError> fill(const ContinueCheck& keep_going) {
    const auto& steps = index.steps();
    std::int64_t all_ns = 0;
    for (std::uint64_t i = options.steps.from; i < options.steps.to; ++i)
      all_ns += std::max<std::int64_t>(0, (steps[i].end - steps[i].begin).v);
    if (all_ns <= 0)
      return std::unexpected(
          TraceError{TraceError::Kind::NotFound, "these steps have no times to play"});
    const auto ns = static_cast<double>(all_ns);
    const double speed = options.speed.value_or(ns / 1e9 / FilmOptions::kSeconds);
    // A speed that was given in decimals is not exact: no frame for its rounding.
    constexpr double kRounding = 1e-6;
    const double wanted = std::ceil(ns / 1e9 / speed * options.frames_per_second - kRounding);
    if (wanted > kMaxFrames) {
      return std::unexpected(TraceError{
          TraceError::Kind::Io,
          std::format("the video would have {:.0f} frames, more than {}: choose a greater speed, "
                      "fewer frames per second, or fewer steps",
                      wanted, kMaxFrames)});
    }
    const auto frames = static_cast<std::uint32_t>(std::max(1.0, wanted));
    const auto info = reader.info();
    if (!info) return std::unexpected(info.error());
    const auto last = steps[options.steps.to - 1];
    const auto tokens = reader.tokens(0, last.first_token + last.n_tokens);
    if (!tokens) return std::unexpected(tokens.error());

    Subtitles texts(options, frames);
    const double margin = options.width / 40.0, right = options.width - margin;
    const std::string model =
        info->model_files.empty()
            ? std::string("session ") + info->id
            : std::filesystem::path(info->model_files.front().path).filename().string();
    texts.add_always(margin, 12 * scale(), 7,
                     std::format("{}: bytes by step and {}", model, name_of(options.map)));
    texts.add_always(right, 40 * scale(), 9, speed_text(speed), 0.75);
    add_labels(texts);
    Changing clock(texts, right, 12 * scale(), 9), op_text(texts, margin, 40 * scale(), 7, 0.9),
        text(texts, margin, film.plot_.y + film.plot_.height + 36 * scale(), 7);

    TextBefore before(*tokens);
    std::uint64_t at = options.steps.from;
    std::int64_t played = 0;  // before step `at`
    std::optional<Step> step;
    std::shared_ptr<const GraphTemplate> graph;
    std::size_t series = index.series().size();
    std::string shown_tokens;
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
      if (!keep_going()) return std::unexpected(cancelled_error());
      const auto now = static_cast<std::int64_t>(
          std::min(ns - 1, frame * 1e9 / options.frames_per_second * speed));
      const auto length = [&] {
        return std::max<std::int64_t>(0, (steps[at].end - steps[at].begin).v);
      };
      while (at + 1 < options.steps.to && now - played >= length()) {
        played += length();
        ++at;
        step.reset();
      }
      if (!step) {
        auto read = reader.step(StepId{static_cast<std::uint32_t>(at)});
        if (!read) return std::unexpected(read.error());
        step = *std::move(read);
        graph.reset();
        if (step->graph.v != 0) {
          const auto known = reader.graph(step->graph);
          if (!known) return std::unexpected(known.error());
          graph = *known;
        }
        series = series_of(*step);
        const std::size_t first = step->first_token;
        shown_tokens = escaped(before.upto(first)) + "{\\1c&H2827D6&\\b1}" +
                       escaped(text_of(*tokens, first, first + step->n_tokens)) + "{\\r}";
      }
      const std::int64_t time = step->begin.v + (now - played);
      Moment moment{.step = at, .series = series};
      std::string running;
      const auto ended = std::ranges::upper_bound(step->op_ends, Ns{time});
      const bool is_in_ops = ended != step->op_ends.end() && time >= step->first_op.v;
      if (series < film.rows_.size() && time >= step->first_op.v) {
        moment.running = is_in_ops;
        moment.op = ended - step->op_ends.begin() - (is_in_ops ? 0 : 1);
        moment.op = std::min(moment.op, std::ssize(film.rows_[series]) - 1);
      }
      if (graph && is_in_ops) {
        const OpId op{static_cast<std::uint32_t>(ended - step->op_ends.begin())};
        const Op& of = graph->op(op);
        running = std::format("{}  {}", graph->tensor(graph->node(of.last()).output).name,
                              op_name(*graph, of));
        if (of.layer != kNoLayer) running += std::format("  layer {}", of.layer.v);
        running += "  " + format_duration(step->op_duration(op)->v);
      }
      film.moments_.push_back(moment);
      clock.set(frame, escaped(std::format("step {} of {} ({})   {:.3f} ms", at, steps.size(),
                                           to_text(step->phase), static_cast<double>(time) / 1e6)));
      op_text.set(frame, escaped(running));
      text.set(frame, shown_tokens);
    }
    for (Changing* of : {&clock, &op_text, &text}) of->end(frames);
    film.subtitles_ = texts.take();
    return {};
  }

  void draw_background() {
    const Box& plot = film.plot_;
    film.base_ = exchange::Image(options.width, options.height);
    film.base_.fill({plot.x - film.line_, plot.y, film.line_, plot.height + film.line_},
                    exchange::Image::kInk);
    film.base_.fill(
        {plot.x - film.line_, plot.y + plot.height, plot.width + film.line_, film.line_},
        exchange::Image::kInk);
    const std::uint32_t wide = pixels(kLegendColours);
    for (std::uint32_t x = 0; x < wide; ++x)
      film.base_.fill(
          {plot.x + (plot.width - wide) / 2 + x, plot.y + plot.height + pixels(8), 1, pixels(12)},
          exchange::colour_of(x + 1, wide));
  }
};

std::expected<Film, TraceError> Film::make(const SessionReader& reader, const FilmOptions& options,
                                           const ContinueCheck& keep_going) {
  const auto index = SessionIndex::build(reader, keep_going);
  if (!index) return std::unexpected(index.error());
  Film film;
  Builder builder{.reader = reader, .index = *index, .options = options, .film = film};
  film.line_ = std::max(1U, builder.pixels(2));
  film.plot_ = {.x = options.width / 7,
                .y = builder.pixels(76),
                .width = options.width - options.width / 7 - options.width / 40,
                .height = builder.pixels(430)};
  RasterQuery query{.x = {.axis = Axis::Step, .pixels = film.plot_.width},
                    .y = {.axis = options.map, .pixels = film.plot_.height},
                    .value = tt::Value::Touched,
                    .filter = {}};
  query.x.range = {static_cast<std::int64_t>(options.steps.from),
                   static_cast<std::int64_t>(options.steps.to)};
  query.filter.steps = options.steps;
  auto found = raster(*index, query, keep_going);
  if (!found) return std::unexpected(found.error());
  film.raster_ = *std::move(found);
  if (film.raster_.cells.empty() || film.raster_.largest <= 0) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("the map by {} is empty for these steps: choose another one with --map",
                    name_of(options.map))});
  }
  builder.find_rows();
  if (auto filled = builder.fill(keep_going); !filled) return std::unexpected(filled.error());
  builder.draw_background();
  film.draw_cells({0, film.plot_.width}, {0, film.plot_.height}, false);
  film.step_ = options.steps.from;
  return film;
}

Film::Pixels Film::columns_of(std::uint64_t step) const {
  const Range<std::int64_t>& all = raster_.x.range;
  const auto count = static_cast<std::uint64_t>(all.to - all.from);
  const std::uint64_t place = step - static_cast<std::uint64_t>(all.from);
  return {static_cast<std::uint32_t>(place * plot_.width / count),
          static_cast<std::uint32_t>((place + 1) * plot_.width / count)};
}

// At least one pixel.
Film::Pixels Film::rows_of(const Range<std::int64_t>& rows) const {
  const auto from = static_cast<double>(raster_.y.range.from),
             all = static_cast<double>(raster_.y.range.to) - from;
  const auto pixel = [&](std::int64_t row) {
    const double part = (static_cast<double>(row) - from) / all;
    return static_cast<std::uint32_t>(std::clamp(part, 0.0, 1.0) * plot_.height);
  };
  const std::uint32_t first = std::min(pixel(rows.from), plot_.height - 1);
  return {first, std::clamp(pixel(rows.to), first + 1, plot_.height)};
}

void Film::draw_cells(Pixels columns, Pixels rows, bool played) {
  for (std::uint32_t y = rows.from; y < rows.to; ++y) {
    const std::size_t row = std::size_t{y} * raster_.y.pixels / plot_.height;
    for (std::uint32_t x = columns.from; x < columns.to; ++x) {
      const std::size_t column = std::size_t{x} * raster_.x.pixels / plot_.width;
      const Colour colour =
          exchange::colour_of(raster_.cells[row * raster_.x.pixels + column], raster_.largest);
      base_.fill({plot_.x + x, plot_.y + y, 1, 1}, played ? colour : pale(colour));
    }
  }
}

std::span<const Colour> Film::picture(std::size_t frame) {
  const Moment& moment = moments_[frame];
  const Pixels all{0, plot_.height};
  if (moment.step > step_) {
    draw_cells({columns_of(step_).from, columns_of(moment.step).from}, all, true);
    step_ = moment.step;
    ops_ = 0;
  }
  const Pixels columns = columns_of(step_);
  const bool has_ops = moment.series < rows_.size();
  for (; has_ops && ops_ <= moment.op; ++ops_)
    for (const Range<std::int64_t>& rows : rows_[moment.series][static_cast<std::size_t>(ops_)])
      draw_cells(columns, rows_of(rows), true);
  shown_ = base_;
  const auto vertical = [&](std::uint32_t x) {
    shown_.fill({plot_.x + x, plot_.y, line_, plot_.height}, kAccent);
  };
  vertical(columns.from);
  vertical(std::max(columns.to, line_) - line_);
  if (!has_ops || !moment.running) return shown_.pixels();
  // The rows of the running op: beside the axis, and framed.
  for (const Range<std::int64_t>& rows :
       rows_[moment.series][static_cast<std::size_t>(moment.op)]) {
    const Pixels at = rows_of(rows);
    const std::uint32_t top = plot_.y + at.from, tall = std::max(at.to - at.from, 2 * line_);
    shown_.fill({plot_.x - 4 * line_, top, 3 * line_, tall}, kAccent);
    const std::uint32_t left = plot_.x + columns.from, wide = columns.to - columns.from;
    shown_.fill({left, top, wide, line_}, kAccent);
    shown_.fill({left, top + tall - line_, wide, line_}, kAccent);
  }
  return shown_.pixels();
}

}  // namespace tt::cli
