// tt export SESSION... -o OUTPUT: writes a session, or several as one dataset, in a format of other
// tools. An incomplete output file is removed.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <format>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/export.h"
#include "api/exchange/run_folder/run_folder.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/video/film.h"
#include "cli/video/video_encoder.h"
#include "program/installation.h"
#include "program/validators.h"
#include "server/page_file/page_file.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/join.h"
#include "tracer/text/parse_number.h"

namespace tt::cli {
namespace {

using namespace tt::exchange;

// What the rows of the map of a video can be.
const std::map<std::string, Axis> kVideoMaps = {
    {to_text(Axis::Layer), Axis::Layer},   {to_text(Axis::Component), Axis::Component},
    {to_text(Axis::OpKind), Axis::OpKind}, {to_text(Axis::Tensor), Axis::Tensor},
    {to_text(Axis::Expert), Axis::Expert}, {to_text(Axis::File), Axis::File},
    {to_text(Axis::Source), Axis::Source}};

// A folder of Parquet files, for one session or many: parquet with --part-rows.
constexpr const char* kDataset = "dataset";
constexpr std::uint64_t kDatasetRows = 10'000'000;

struct VideoOptions {
  std::optional<Axis> map;
  std::optional<double> speed;
  std::optional<std::uint32_t> frames_per_second;
  std::string size;  // "1280x720"; empty: the default
  bool any() const { return map || speed || frames_per_second || !size.empty(); }
};

struct ExportCommand {
  std::string format;
  std::vector<std::string> arguments;
  SessionFiles files;
  std::filesystem::path output;
  ExportOptions options;
  std::optional<LogLevel> level;
  StepRangeOptions steps;
  std::uint64_t part_rows = 0;  // 0: one file
  VideoOptions video;
  bool force = false, quiet = false, dated = false;
};

// The name of a dated output: run_20260131_120000, llama_instrumentation_20260131_120000.log,
// session_20260131_120000.parquet. The time is the start of the session in UTC.
std::string dated_name(const ExportCommand& command, std::int64_t start_utc_ns) {
  using namespace std::chrono;
  const std::string date =
      std::format("{:%Y%m%d_%H%M%S}", sys_time<seconds>{seconds{start_utc_ns / 1'000'000'000}});
  if (command.format == kRunFolder) return "run_" + date;
  if (command.format == kPageFile) return "session_" + date + std::string(kPageFileExtension);
  if (const VideoFormat* const video = find_video_format(command.format))
    return "session_" + date + std::string(video->extension);
  const auto format = find_format(command.format);
  if (format == Format::Ndjson) return "llama_instrumentation_" + date + ".log";
  return "session_" + date + std::string(format ? format_info(*format).extension : "");
}

// With --dated, -o is the folder that the output is written to.
std::optional<std::string> name_output(ExportCommand& command) {
  if (!command.dated) return std::nullopt;
  if (command.format.empty()) return "--dated requires --format";
  std::error_code none;
  if (!std::filesystem::is_directory(command.output, none)) {
    return std::format("--dated: {} is not a folder. Give the folder to write to with -o.",
                       command.output.string());
  }
  const auto reader = SessionReader::open(command.files.paths.front());
  if (!reader) return std::nullopt;  // reported when the session is opened
  if (const auto info = reader->info()) command.output /= dated_name(command, info->start_utc_ns);
  return std::nullopt;
}

// A file that is not in the list of formats, because the routes of the server make it.
bool is_page_file(const ExportCommand& command) {
  if (!command.format.empty()) return command.format == kPageFile;
  return command.output.string().ends_with(kPageFileExtension);
}

// Null: the output is not a video.
const VideoFormat* video_format_of(const ExportCommand& command) {
  if (!command.format.empty()) return find_video_format(command.format);
  for (const VideoFormat& format : video_formats())
    if (command.output.string().ends_with(format.extension)) return &format;
  return nullptr;
}

// --format, otherwise the format with the longest matching extension of the output. nullopt:
// unknown.
std::optional<Format> format_of(const ExportCommand& command) {
  if (!command.format.empty()) return find_format(command.format);
  const FormatInfo* best = nullptr;
  for (const FormatInfo& facts : formats()) {
    if (command.output.string().ends_with(facts.extension) &&
        (best == nullptr || facts.extension.size() > best->extension.size()))
      best = &facts;
  }
  if (best == nullptr) return std::nullopt;
  return best->format;
}

std::vector<std::string> known_formats() {
  std::vector<std::string> names;
  for (const FormatInfo& facts : formats()) names.emplace_back(facts.name);
  names.emplace_back(kDataset);
  names.emplace_back(kRunFolder);
  names.emplace_back(kPageFile);
  for (const VideoFormat& video : video_formats()) names.emplace_back(video.name);
  return names;
}

// `write` gets what receives the bytes of the output.
template <class Write>
WriteResult write_file(const ExportCommand& command, const Write& write) {
  if (command.output == "-") {
    return write([](std::string_view bytes) -> WriteResult {
      put(bytes);
      if (output_ok()) return {};
      return std::unexpected(cancelled_error());  // main() reports the error
    });
  }
  auto file = OutputFile::create(command.output);
  if (!file) return std::unexpected(file.error());
  if (WriteResult written = write(file->sink()); !written) return written;
  return file->commit();
}

WriteResult write_page(const ExportCommand& command, const ContinueCheck& keep_going) {
  const ExportRange& range = command.options.range;
  const PageFileOptions options = {.session = command.files.paths.front(),
                                   .viewer = viewer_in(current_installation().webui),
                                   .first = range.first,
                                   .last = range.last};
  if (Status possible = check_page_file(options); !possible) return possible;
  return write_file(
      command, [&](const ByteSink& sink) { return write_page_file(options, sink, keep_going); });
}

// Width and height of "1280x720". Codecs need even numbers.
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_size(std::string_view text) {
  const std::size_t x = text.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto width = parse_number<std::uint32_t>(text.substr(0, x)),
             height = parse_number<std::uint32_t>(text.substr(x + 1));
  if (!width || !height || *width < 320 || *width > 3840 || *height < 240 || *height > 2160 ||
      *width % 2 != 0 || *height % 2 != 0)
    return std::nullopt;
  return std::pair(*width, *height);
}

WriteResult write_video(const ExportCommand& command, const VideoFormat& format,
                        const FilmOptions& chosen, const SessionReader& reader,
                        const ContinueCheck& keep_going) {
  const auto failed = [](const std::string& why) {
    return std::unexpected(TraceError{TraceError::Kind::Io, why});
  };
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  FilmOptions options = chosen;
  const ExportRange& range = command.options.range;
  options.steps = {range.first.v, range.last ? std::min(*steps, range.last->v + 1) : *steps};
  auto film = Film::make(reader, options, keep_going);
  if (!film) return std::unexpected(film.error());
  auto file = OutputFile::create(command.output);
  if (!file) return std::unexpected(file.error());
  auto encoder = VideoEncoder::start({.format = &format,
                                      .width = options.width,
                                      .height = options.height,
                                      .frames_per_second = options.frames_per_second,
                                      .subtitles = film->subtitles(),
                                      .output = file->written_path()});
  if (!encoder) return failed(encoder.error());
  for (std::size_t frame = 0; frame < film->frames(); ++frame) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    if (!encoder->add(std::as_bytes(film->picture(frame)))) break;
  }
  if (const auto done = encoder->finish(); !done) return failed(done.error());
  return file->commit();
}

// The export for any output form, as one function.
using ExportFunction =
    std::function<WriteResult(const SessionReader& reader, const ContinueCheck& keep_going)>;

std::expected<ExportFunction, std::string> export_function(ExportCommand& command) {
  if (auto error = command.steps.error()) return std::unexpected(*std::move(error));
  command.options.range.first = StepId{command.steps.from};
  if (command.steps.to)
    command.options.range.last = StepId{static_cast<std::uint32_t>(*command.steps.to - 1)};
  const bool to_stdout = command.output == "-";
  if (command.video.any() && video_format_of(command) == nullptr)
    return std::unexpected(
        "--map, --speed, --fps and --size are for videos: --format webm, mp4 or gif");
  if (command.files.set && command.part_rows == 0) {
    return std::unexpected(
        "several sessions are written as one dataset, a folder for each: use --format dataset. "
        "Other formats hold one session.");
  }
  const std::vector<std::filesystem::path> inputs(command.files.paths.begin(),
                                                  command.files.paths.end());
  const auto find_folder = [&]() -> std::optional<std::string> {
    auto folder = output_path(command.output, Target::Folder, inputs, command.force);
    if (!folder) return folder.error();
    command.output = *std::move(folder);
    return std::nullopt;
  };
  const std::string no_folder = "a folder cannot go to standard output. Specify a folder with -o.";
  if (command.format == kRunFolder) {
    if (to_stdout) return std::unexpected(no_folder);
    if (auto error = find_folder()) return std::unexpected(*std::move(error));
    return [&command](const SessionReader& reader, const ContinueCheck& keep_going) {
      return export_run_folder(reader, command.options.range, command.output, keep_going);
    };
  }
  const auto find_file = [&]() -> std::optional<std::string> {
    if (to_stdout) return std::nullopt;
    auto output = output_path(command.output, Target::FileOrPipe, inputs, command.force);
    if (!output) return output.error();
    command.output = *std::move(output);
    return std::nullopt;
  };
  if (is_page_file(command)) {
    if (command.level || command.part_rows > 0 || command.options.range.per_head ||
        command.options.range.per_token) {
      return std::unexpected(
          "a file that shows the session has no rows: --level, --per-head, --per-token and "
          "--part-rows are for other formats");
    }
    if (auto error = find_file()) return std::unexpected(*std::move(error));
    return [&command](const SessionReader&, const ContinueCheck& keep_going) {
      return write_page(command, keep_going);
    };
  }
  if (command.format.empty() && command.output.string().ends_with(".trace.json")) {
    return std::unexpected(
        std::format("a trace for Chrome is compressed, and viewers open it so: write to {0}.gz, or "
                    "choose the rows as JSON with --format json",
                    command.output.string()));
  }
  if (const VideoFormat* const video = video_format_of(command)) {
    if (to_stdout)
      return std::unexpected("a video cannot go to standard output. Specify a file with -o.");
    if (command.level || command.part_rows > 0 || command.options.range.per_head ||
        command.options.range.per_token) {
      return std::unexpected(
          "a video has no rows: --level, --per-head, --per-token and --part-rows are for other "
          "formats");
    }
    FilmOptions film{
        .frames_per_second = command.video.frames_per_second.value_or(video->frames_per_second),
        .speed = command.video.speed};
    film.map = command.video.map.value_or(film.map);
    if (!command.video.size.empty()) {
      const auto size = parse_size(command.video.size);
      if (!size)
        return std::unexpected(
            "--size: must be WIDTHxHEIGHT with even numbers from 320x240 to 3840x2160, such as "
            "1280x720");
      std::tie(film.width, film.height) = *size;
    }
    if (auto error = find_file()) return std::unexpected(*std::move(error));
    return [&command, video, film](const SessionReader& reader, const ContinueCheck& keep_going) {
      return write_video(command, *video, film, reader, keep_going);
    };
  }
  const auto format = format_of(command);
  if (!format) {
    return std::unexpected(std::format(
        "cannot determine the format of {}. Use --format with one of: {}.",
        command.format.empty() ? command.output.string() : command.format, join(known_formats())));
  }
  command.options.format = *format;
  if (command.level && *format != Format::Ndjson)
    return std::unexpected("--level requires --format ndjson");
  command.options.level = command.level.value_or(command.options.level);
  if (command.options.range.per_token && !has_rows_per_token(*format)) {
    return std::unexpected(
        "--per-token requires --format csv, json, parquet, arrow, arrow-file or folder");
  }
  if (command.part_rows > 0) {
    const auto form = part_format_of(*format);
    if (!form) return std::unexpected("--part-rows requires --format parquet or arrow-file");
    if (to_stdout) return std::unexpected(no_folder);
    if (auto error = find_folder()) return std::unexpected(*std::move(error));
    return [&command, form](const SessionReader& reader, const ContinueCheck& keep_going) {
      return export_parts(reader, command.options.range, *form, command.output, command.part_rows,
                          keep_going);
    };
  }
  if (auto error = find_file()) return std::unexpected(*std::move(error));
  return [&command](const SessionReader& reader, const ContinueCheck& keep_going) {
    return write_file(command, [&](const ByteSink& sink) {
      return export_session(reader, command.options, sink, keep_going);
    });
  };
}

// Nothing if the session was written; else the exit status of the verb.
std::optional<int> write_session(const std::string& file, const ExportFunction& run_export,
                                 ExportCommand& command, Progress& progress) {
  auto reader = open_session(file);
  if (!reader) return progress.failed(reader.error());
  const auto readable_steps =
      truncate_at_damage(*reader, command.options, progress.start("reading"));
  if (!readable_steps) return progress.failed(readable_steps.error());
  progress.warn_of_damage(*readable_steps);
  progress.note_missing_accesses(*reader);
  const auto steps = reader->step_count();
  if (!steps) return progress.failed(steps.error());
  const ExportRange& range = command.options.range;
  if (const auto error = range_error(range, *steps)) return progress.failed(*error);
  const std::uint64_t end =
      range.last ? std::min<std::uint64_t>(range.last->v + std::uint64_t{1}, *steps) : *steps;
  const std::uint64_t steps_to_write = end - std::min<std::uint64_t>(range.first.v, end);
  // Otherwise what the page asks, or pictures.
  const bool counts_steps = !is_page_file(command) && video_format_of(command) == nullptr;
  const WriteResult written =
      run_export(*reader, counts_steps ? progress.start_steps("writing " + file, steps_to_write)
                                       : progress.start("writing " + file));
  if (!output_ok()) {
    progress.end();
    return 1;
  }
  if (!written) return progress.failed(written.error());
  return std::nullopt;
}

int run(ExportCommand& command) {
  const bool into_terminal = command.output == "-" && isatty(STDOUT_FILENO) != 0;
  Progress progress(
      "export", command.quiet || into_terminal ? ProgressVisibility::No : ProgressVisibility::Yes);
  auto files = session_files(command.arguments);
  if (!files) return progress.failed(files.error());
  command.files = *std::move(files);
  if (command.format == kDataset) {
    command.format = format_info(Format::Parquet).name;
    if (command.part_rows == 0) command.part_rows = kDatasetRows;
  }
  if (const auto error = name_output(command)) return progress.failed(*error);
  const auto run_export = export_function(command);
  if (!run_export) return progress.failed(run_export.error());
  for (const std::string& file : command.files.paths)
    if (const auto code = write_session(file, *run_export, command, progress)) return *code;
  progress.end();
  return progress.exit_code();
}

}  // namespace

RunVerb add_export_command(CLI::App& command) {
  auto options = std::make_shared<ExportCommand>();
  add_session_files(command, options->arguments);
  command
      .add_option("-o,--output", options->output,
                  "File or folder to write; the extension selects the format unless --format is "
                  "given; -: stdout")
      ->required()
      ->type_name("FILE");
  command.add_option("--format", options->format, "Output format: " + join(known_formats()))
      ->transform(one_of(known_formats()))
      ->type_name("FORMAT");
  add_step_range_options(command, options->steps);
  const std::map<std::string, LogLevel> levels = {{"minimal", LogLevel::Minimal},
                                                  {"detailed", LogLevel::Detailed},
                                                  {"verbose", LogLevel::Verbose}};
  command
      .add_option("--level", options->level,
                  "Level of the log (ndjson): minimal (no accesses), detailed (default) or "
                  "verbose (adds value statistics)")
      ->transform(choice(levels))
      ->type_name("LEVEL");
  command.add_flag("--per-head", options->options.range.per_head,
                   "Write one row per head for reads of Q, K, V and O weights");
  command.add_flag("--per-token", options->options.range.per_token,
                   "Write the rows of a step with several tokens once for each token; token_count "
                   "is the number of tokens that share a row");
  command
      .add_option("--part-rows", options->part_rows,
                  "Number of rows after which a new file starts (parquet, arrow-file; dataset: "
                  "10000000): writes OUTPUT/session=ID/steps=A-B/part.parquet or part.arrow")
      ->type_name("N");
  command
      .add_option("--map", options->video.map,
                  "Videos: the rows of the map, whose columns are the steps (default: layer)")
      ->transform(choice(kVideoMaps))
      ->type_name("ROWS");
  command
      .add_option(
          "--speed", options->video.speed,
          "Videos: speed relative to the run, such as 0.01 (default: so that the video lasts "
          "20 s)")
      ->check(number_above_zero(1000))
      ->type_name("X");
  command
      .add_option("--fps", options->video.frames_per_second,
                  "Videos: pictures per second (default: 30; gif: 10)")
      ->check(whole_number(1, 60))
      ->type_name("N");
  command.add_option("--size", options->video.size, "Videos: size in pixels (default: 1280x720)")
      ->type_name("WIDTHxHEIGHT");
  command.add_flag("--dated", options->dated,
                   "Name the output in the folder -o after the start of the session: run_DATE "
                   "(folder), llama_instrumentation_DATE.log (ndjson), session_DATE.EXTENSION");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.add_flag("-q,--quiet", options->quiet, "Do not show progress");
  command.footer(
      "Example: tt export s.ttrace -o s.parquet\n"
      "         tt export s.ttrace -o lake --format parquet --part-rows 1000000\n"
      "         tt export 'runs/*.ttrace' -o lake --format dataset\n"
      "         tt export s.ttrace -o run --format folder\n"
      "         tt export s.ttrace -o s.html\n"
      "         tt export s.ttrace -o tokens.parquet --per-token\n"
      "         tt export s.ttrace --format ndjson -o - | head");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
