// Exports a session in the formats of other tools. A single file is generated while it is
// sent; a folder is created first and sent as a tar archive. If that takes long, the response is
// begun meanwhile.
#include <algorithm>
#include <array>
#include <chrono>
#include <format>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/export.h"
#include "api/exchange/run_folder/run_folder.h"
#include "api/exchange/run_folder/tar.h"
#include "api/exchange/values/value_files.h"
#include "server/frontend/arrival.h"
#include "server/frontend/handler_slot.h"
#include "server/http/concurrency_limit.h"
#include "server/http/session_query_handler.h"
#include "server/page_file/page_file.h"
#include "server/routes/session_routes.h"
#include "server/sessions/work_folder.h"

namespace tt {

namespace {

namespace fs = std::filesystem;
using Request = httplib::Request;
using Response = httplib::Response;
using namespace tt::exchange;

struct ExportRequest {
  ExportOptions options;
  bool run_folder = false;
  bool page_file = false;
  std::uint64_t part_rows = 0;  // 0: one file
  PartFormat parts = PartFormat::Parquet;

  bool is_folder() const { return run_folder || part_rows > 0; }
};

std::expected<LogLevel, Problem> level_parameter(const Request& request) {
  constexpr std::array<std::string_view, 3> kLevels = {"minimal", "detailed", "verbose"};
  return enum_parameter(request, "level", kLevels, "detailed")
      .transform([&](const std::string& name) {
        return static_cast<LogLevel>(std::ranges::find(kLevels, name) - kLevels.begin());
      });
}

std::expected<ExportRequest, Problem> parse_export_request(const Request& request) {
  ParameterReader read;
  ExportRequest export_request;
  std::vector<std::string_view> names;
  for (const FormatInfo& facts : formats()) names.push_back(facts.name);
  names.push_back(kRunFolder);
  names.push_back(kPageFile);
  const std::string_view default_format = format_info(Format::Parquet).name;
  const std::string format = read.take(enum_parameter(request, "format", names, default_format));
  export_request.run_folder = format == kRunFolder;
  export_request.page_file = format == kPageFile;
  ExportOptions& options = export_request.options;
  options.format = find_format(format).value_or(Format::Parquet);
  options.level = read.take(level_parameter(request));
  const Bounds ends = read.take(bounds_parameters(request, "first_step", "last_step", kMaxId));
  options.range.first = StepId{static_cast<std::uint32_t>(ends.from.value_or(0))};
  if (ends.to) options.range.last = StepId{static_cast<std::uint32_t>(*ends.to)};
  options.range.per_head = read.take(flag_parameter(request, "per_head")).value_or(false);
  options.range.per_token = read.take(flag_parameter(request, "per_token")).value_or(false);
  export_request.part_rows =
      read.take(number_parameter(request, "part_rows", kMaxJsonInteger)).value_or(0);
  if (read.problem()) return std::unexpected(*read.problem());
  if (options.range.per_token && !export_request.run_folder &&
      (export_request.page_file || !has_rows_per_token(options.format))) {
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                "\"per_token\" requires the format csv, json, parquet, arrow, arrow-file or "
                "folder."});
  }
  if (export_request.part_rows > 0) {
    const bool is_rows = !export_request.run_folder && !export_request.page_file;
    const auto form = is_rows ? part_format_of(options.format) : std::nullopt;
    if (!form) {
      return std::unexpected(Problem{ErrorCode::BadRequest,
                                     "\"part_rows\" requires the format parquet or arrow-file."});
    }
    export_request.parts = *form;
  }
  return export_request;
}

constexpr int kMaxExports = 4;
using ExportSlot = std::shared_ptr<const ConcurrencyLimit::Slot>;  // kept until the export is sent

// Sends a chunked response whose content `write` generates.
using Write =
    std::function<WriteResult(const ByteSink& to_client, const ContinueCheck& keep_going)>;

void send(Response& response, ExportSlot slot, const std::string& name, std::string_view media_type,
          Write write) {
  response.set_header("Content-Disposition", std::format("attachment; filename=\"{}\"", name));
  response.set_chunked_content_provider(
      std::string(media_type),
      [slot = std::move(slot), write = std::move(write)](std::size_t, httplib::DataSink& sink) {
        const ByteSink to_client = [&](std::string_view bytes) -> WriteResult {
          if (sink.write(bytes.data(), bytes.size())) return {};
          return std::unexpected(cancelled_error());
        };
        // A response without its last chunk is incomplete; the client detects this.
        const bool whole = write(to_client, [&] { return sink.is_writable(); }).has_value();
        if (whole) sink.done();
        return whole;
      });
}

// Creates `folder`, which must not exist. Stops when the disk is full or the client disconnects.
std::expected<void, Problem> make_folder(const Request& request, Retention& retention,
                                         const SessionReader& reader,
                                         const ExportRequest& export_request,
                                         const fs::path& folder) {
  auto claim = retention.claim(Retention::kBetweenChecks);
  if (!claim) return std::unexpected(claim.error());
  std::optional<Problem> rejected;
  const ContinueCheck connected = while_connected(request);
  const ContinueCheck keep_going = [&] {
    if (!rejected) rejected = claim->check();
    return !rejected && connected();
  };
  const ExportRange& range = export_request.options.range;
  const WriteResult made = export_request.run_folder
                               ? export_run_folder(reader, range, folder, keep_going)
                               : export_parts(reader, range, export_request.parts, folder,
                                              export_request.part_rows, keep_going);
  if (rejected) return std::unexpected(*std::move(rejected));
  if (!made) return std::unexpected(problem_of(made.error()));
  return {};
}

void send_folder(const Request& request, Response& response, ExportSlot slot,
                 SessionStore& sessions, Retention& retention,
                 const std::shared_ptr<const SessionReader>& reader,
                 const ExportRequest& export_request) {
  constexpr std::string_view kTar = "application/x-tar";
  constexpr std::chrono::seconds kPatience{4};  // from the arrival of a request to its response
  const std::string& id = request.path_params.at("id");
  if (request.method == "HEAD") {  // do not create an archive
    const auto nothing = [](const ByteSink&, const ContinueCheck&) { return WriteResult{}; };
    return send(response, std::move(slot), id + ".tar", kTar, nothing);
  }
  const auto info = reader->info();
  if (!info) return respond(response, problem_of(info.error()));
  auto work = WorkFolder::make(sessions.folder());
  if (!work) return respond(response, problem_of(work.error()));
  const auto kept = std::make_shared<const WorkFolder>(*std::move(work));  // kept until sent
  const fs::path folder = kept->path() / "folder";
  // The request outlives its response. Deferred only if no thread can be started.
  const auto making = std::make_shared<std::future<std::expected<void, Problem>>>(
      std::async(std::launch::async | std::launch::deferred,
                 [&request, &retention, kept, reader, export_request, folder] {
                   return make_folder(request, retention, *reader, export_request, folder);
                 }));
  const auto is_made = [&] {
    const HandlerWait wait;
    return making->wait_until(arrival_of(request) + kPatience) != std::future_status::timeout;
  };
  if (is_made()) {
    if (const auto made = making->get(); !made) return respond(response, made.error());
  }
  const std::int64_t changed_utc_s = info->start_utc_ns / 1'000'000'000;
  send(response, std::move(slot), id + ".tar", kTar,
       [making, kept, folder, id, changed_utc_s](const ByteSink& sink,
                                                 const ContinueCheck& keep_going) -> WriteResult {
         constexpr std::chrono::milliseconds kDisconnectCheckInterval{200};
         while (making->valid() &&
                making->wait_for(kDisconnectCheckInterval) == std::future_status::timeout)
           if (!keep_going()) return std::unexpected(cancelled_error());
         if (making->valid() && !making->get()) return std::unexpected(cancelled_error());
         return write_tar(folder, id, changed_utc_s, sink, keep_going);
       });
}

Problem too_many_exports() {
  return {ErrorCode::TooManyQueries, "Too many exports are running. Try again in a moment."};
}

void send_export(const Request& request, Response& response, SessionStore& sessions,
                 Retention& retention, const std::filesystem::path& viewer,
                 ConcurrencyLimit& limit) {
  const auto export_request = parse_export_request(request);
  if (!export_request) return respond(response, export_request.error());
  const ExportOptions& options = export_request->options;
  const std::string& id = request.path_params.at("id");
  if (not_modified(request, response, sessions.tag(id))) return;
  auto opened = sessions.open(id);
  if (!opened) return respond(response, problem_of(opened.error()));
  auto taken = limit.take();
  if (!taken) return respond(response, too_many_exports());
  auto slot = std::make_shared<const ConcurrencyLimit::Slot>(*std::move(taken));
  // The export is generated while it is sent, so damage in its range must be detected before.
  const auto readable_steps = truncate_at_damage(*opened, options, while_connected(request));
  if (!readable_steps) return respond(response, problem_of(readable_steps.error()));
  set_damage_header(response, *readable_steps);
  const auto reader = std::make_shared<const SessionReader>(*std::move(opened));
  const auto steps = reader->step_count();
  if (!steps) return respond(response, problem_of(steps.error()));
  if (auto complaint = range_error(options.range, *steps))
    return respond(response, Problem{ErrorCode::BadRequest, *std::move(complaint)});
  // Report detectable errors before the status line is sent.
  if (const WriteResult possible = check_export(*reader, options); !possible)
    return respond(response, problem_of(possible.error()));
  if (export_request->is_folder())
    return send_folder(request, response, std::move(slot), sessions, retention, reader,
                       *export_request);
  if (export_request->page_file) {
    const auto file = sessions.file(id);
    if (!file) return respond(response, problem_of(file.error()));
    const PageFileOptions page = {.session = file->path,
                                  .viewer = viewer,
                                  .first = options.range.first,
                                  .last = options.range.last};
    if (const Status possible = check_page_file(page); !possible)
      return respond(response, problem_of(possible.error()));
    return send(response, std::move(slot), id + std::string(kPageFileExtension), kPageFileType,
                [reader, page](const ByteSink& sink, const ContinueCheck& keep_going) {
                  return write_page_file(page, sink, keep_going);
                });
  }
  const FormatInfo& facts = format_info(options.format);
  send(response, std::move(slot), id + std::string(facts.extension), facts.media_type,
       [reader, options](const ByteSink& sink, const ContinueCheck& keep_going) {
         return export_session(*reader, options, sink, keep_going);
       });
}

// Whether the session has an output of the selection.
std::expected<bool, TraceError> has_captured(const SessionReader& reader,
                                             const CapturedSelection& selection,
                                             const ContinueCheck& keep_going) {
  bool any = false;
  const auto read = for_each_captured(
      reader, selection, keep_going,
      [&](StepId, const GraphTemplate&, const std::string&, const OutputValues&) {
        any = true;
        return std::expected<void, TraceError>(std::unexpected(cancelled_error()));  // enough
      });
  if (!read && !any) return std::unexpected(read.error());
  return any;
}

// All captured values of the session, or of a step.
void send_values(const Request& request, Response& response, SessionStore& sessions,
                 ConcurrencyLimit& limit) {
  const auto step = number_parameter(request, "step", kMaxId);
  if (!step) return respond(response, step.error());
  CapturedSelection selection;
  if (*step) selection.step = StepId{static_cast<std::uint32_t>(**step)};
  const std::string& id = request.path_params.at("id");
  if (not_modified(request, response, sessions.tag(id))) return;
  auto opened = sessions.open(id);
  if (!opened) return respond(response, problem_of(opened.error()));
  auto taken = limit.take();
  if (!taken) return respond(response, too_many_exports());
  auto slot = std::make_shared<const ConcurrencyLimit::Slot>(*std::move(taken));
  const auto readable_steps = opened->truncate_at_damage(while_connected(request));
  if (!readable_steps) return respond(response, problem_of(readable_steps.error()));
  set_damage_header(response, *readable_steps);
  const auto reader = std::make_shared<const SessionReader>(*std::move(opened));
  const auto any = has_captured(*reader, selection, while_connected(request));
  if (!any) return respond(response, problem_of(any.error()));
  if (!*any) return respond(response, Problem{ErrorCode::NotFound, kNoCapturedValues});
  send(response, std::move(slot), id + ".safetensors", "application/octet-stream",
       [reader, selection](const ByteSink& sink, const ContinueCheck& keep_going) {
         return write_safetensors(*reader, selection, sink, keep_going);
       });
}

}  // namespace

void add_export_routes(httplib::Server& http, SessionStore& sessions, Retention& retention,
                       const StaticFiles& page) {
  const auto limit = std::make_shared<ConcurrencyLimit>(kMaxExports);
  http.Get("/api/v1/sessions/:id/export", [&, limit](const Request& request, Response& response) {
    send_export(request, response, sessions, retention, viewer_in(page.folder()), *limit);
  });
  http.Get("/api/v1/sessions/:id/values/file",
           [&sessions, limit](const Request& request, Response& response) {
             send_values(request, response, sessions, *limit);
           });
}

}  // namespace tt
