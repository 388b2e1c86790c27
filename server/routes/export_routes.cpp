// Exports a session in the formats of other tools. A single file is generated while it is
// sent; a folder is created first and sent as a tar archive.
#include <algorithm>
#include <array>
#include <chrono>
#include <format>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/export.h"
#include "api/exchange/run_folder/run_folder.h"
#include "api/exchange/run_folder/tar.h"
#include "server/http/session_question.h"
#include "server/routes/routes.h"
#include "server/sessions/work_folder.h"

namespace tt {

namespace {

namespace fs = std::filesystem;
using Request = httplib::Request;
using Response = httplib::Response;
using namespace tt::exchange;

struct ExportQuestion {
  ExportOptions options;
  bool run_folder = false;
  std::uint64_t part_rows = 0;  // 0: one file
  PartForm parts = PartForm::Parquet;

  bool is_folder() const { return run_folder || part_rows > 0; }
};

std::expected<LogLevel, Problem> level_parameter(const Request& request) {
  constexpr std::array<std::string_view, 3> kLevels = {"minimal", "detailed", "verbose"};
  return word_parameter(request, "level", kLevels, "detailed")
      .transform([&](const std::string& name) {
        return static_cast<LogLevel>(std::ranges::find(kLevels, name) - kLevels.begin());
      });
}

std::expected<ExportQuestion, Problem> question_of(const Request& request) {
  ParameterReader read;
  ExportQuestion question;
  std::vector<std::string_view> names;
  for (const FormatFacts& facts : formats()) names.push_back(facts.name);
  names.push_back(kRunFolder);
  const std::string_view default_format = facts_of(Format::Parquet).name;
  const std::string format = read.take(word_parameter(request, "format", names, default_format));
  question.run_folder = format == kRunFolder;
  ExportOptions& options = question.options;
  options.format = format_named(format).value_or(Format::Parquet);
  options.level = read.take(level_parameter(request));
  const Ends ends = read.take(ends_parameters(request, "first_step", "last_step", kMostIds));
  options.range.first = StepId{static_cast<std::uint32_t>(ends.from.value_or(0))};
  if (ends.to) options.range.last = StepId{static_cast<std::uint32_t>(*ends.to)};
  options.range.per_head = read.take(flag_parameter(request, "per_head")).value_or(false);
  question.part_rows = read.take(number_parameter(request, "part_rows", kMostNumber)).value_or(0);
  if (read.problem()) return std::unexpected(*read.problem());
  if (question.part_rows > 0) {
    const auto form = question.run_folder ? std::nullopt : part_form_of(options.format);
    if (!form) {
      return std::unexpected(
          Problem{Fault::BadRequest, "\"part_rows\" requires the format parquet or arrow-file."});
    }
    question.parts = *form;
  }
  return question;
}

// Sends a chunked response whose content `write` generates.
using Write = std::function<Written(const ByteSink& to_client, const KeepGoing& keep_going)>;

void send(Response& response, const std::string& name, std::string_view media_type, Write write) {
  response.set_header("Content-Disposition", std::format("attachment; filename=\"{}\"", name));
  response.set_chunked_content_provider(
      std::string(media_type), [write = std::move(write)](std::size_t, httplib::DataSink& sink) {
        const ByteSink to_client = [&](std::string_view bytes) -> Written {
          if (sink.write(bytes.data(), bytes.size())) return {};
          return std::unexpected(cancelled_error());
        };
        // A response without its last chunk is incomplete; the client detects this.
        const bool whole = write(to_client, [&] { return sink.is_writable(); }).has_value();
        if (whole) sink.done();
        return whole;
      });
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code none;
  for (fs::recursive_directory_iterator at(folder, none), end; !none && at != end;
       at.increment(none)) {
    std::error_code no_file;
    const std::uint64_t size = at->file_size(no_file);
    if (!no_file) bytes += size;
  }
  return bytes;
}

// Creates `folder`, which must not exist. Stops when the disk or the quota is full or the
// client disconnects.
std::expected<void, Problem> make_folder(const Request& request, Retention& retention,
                                         const SessionReader& reader,
                                         const ExportQuestion& question, const fs::path& folder) {
  using Clock = std::chrono::steady_clock;
  const fs::path work = folder.parent_path();
  std::optional<Problem> refused;
  const auto look_at_room = [&] {
    const std::uint64_t bytes = bytes_below(work);
    refused = retention.refuse_file(bytes, bytes);
  };
  const KeepGoing connected = while_connected(request);
  Clock::time_point next = Clock::now();
  const KeepGoing keep_going = [&] {
    if (!connected()) return false;
    if (const auto begun = Clock::now(); begun >= next) {
      look_at_room();
      const auto looked = Clock::now();  // spend most of the time writing, not checking
      next = looked + std::chrono::milliseconds(100) + 10 * (looked - begun);
    }
    return !refused;
  };
  const ExportRange& range = question.options.range;
  const Written made = question.run_folder ? export_run_folder(reader, range, folder, keep_going)
                                           : export_parts(reader, range, question.parts, folder,
                                                          question.part_rows, keep_going);
  if (made) look_at_room();
  if (refused) return std::unexpected(*std::move(refused));
  if (!made) return std::unexpected(problem_of(made.error()));
  return {};
}

void send_folder(const Request& request, Response& response, SessionStore& sessions,
                 Retention& retention, const SessionReader& reader,
                 const ExportQuestion& question) {
  constexpr std::string_view kTar = "application/x-tar";
  const std::string& id = request.path_params.at("id");
  if (request.method == "HEAD") {  // do not create an archive
    const auto nothing = [](const ByteSink&, const KeepGoing&) { return Written{}; };
    return send(response, id + ".tar", kTar, nothing);
  }
  const auto info = reader.info();
  if (!info) return answer(response, problem_of(info.error()));
  auto work = WorkFolder::make(sessions.folder());
  if (!work) return answer(response, problem_of(work.error()));
  const auto kept = std::make_shared<const WorkFolder>(*std::move(work));  // kept until sent
  const fs::path folder = kept->path() / "folder";
  if (const auto made = make_folder(request, retention, reader, question, folder); !made)
    return answer(response, made.error());
  const std::int64_t changed_utc_s = info->start_utc_ns / 1'000'000'000;
  send(response, id + ".tar", kTar,
       [kept, folder, id, changed_utc_s](const ByteSink& sink, const KeepGoing& keep_going) {
         return write_tar(folder, id, changed_utc_s, sink, keep_going);
       });
}

void send_export(const Request& request, Response& response, SessionStore& sessions,
                 Retention& retention) {
  const auto question = question_of(request);
  if (!question) return answer(response, question.error());
  const ExportOptions& options = question->options;
  const std::string& id = request.path_params.at("id");
  if (unchanged(request, response, sessions.tag(id))) return;
  auto opened = sessions.open(id);
  if (!opened) return answer(response, problem_of(opened.error()));
  // The export is generated while it is sent, so damage in its range must be detected before.
  const auto whole_steps = end_at_damage(*opened, options, while_connected(request));
  if (!whole_steps) return answer(response, problem_of(whole_steps.error()));
  tell_damage(response, *whole_steps);
  const auto reader = std::make_shared<const SessionReader>(*std::move(opened));
  const auto steps = reader->step_count();
  if (!steps) return answer(response, problem_of(steps.error()));
  if (auto complaint = range_complaint(options.range, *steps))
    return answer(response, Problem{Fault::BadRequest, *std::move(complaint)});
  // Report detectable errors before the status line is sent.
  if (const Written possible = check_export(*reader, options); !possible)
    return answer(response, problem_of(possible.error()));
  if (question->is_folder())
    return send_folder(request, response, sessions, retention, *reader, *question);
  const FormatFacts& facts = facts_of(options.format);
  send(response, id + std::string(facts.extension), facts.media_type,
       [reader, options](const ByteSink& sink, const KeepGoing& keep_going) {
         return export_session(*reader, options, sink, keep_going);
       });
}

}  // namespace

void add_export_routes(httplib::Server& http, SessionStore& sessions, Retention& retention) {
  http.Get("/api/v1/sessions/:id/export",
           [&sessions, &retention](const Request& request, Response& response) {
             send_export(request, response, sessions, retention);
           });
}

}  // namespace tt
