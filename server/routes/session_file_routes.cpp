// Download and import of session files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "server/frontend/range_field.h"
#include "server/http/byte_range.h"
#include "server/http/responses.h"
#include "server/http/session_query_handler.h"
#include "server/routes/routes.h"
#include "server/sessions/fold_case.h"
#include "server/sessions/move_file.h"
#include "server/sessions/session_import.h"
#include "server/sessions/work_folder.h"
#include "tracer/format/file/session_edit.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr const char* kType = "application/vnd.sqlite3";
constexpr std::size_t kReadBytes = 256u << 10;  // read buffer size

// An open file that is being sent. Its content stays available when the name is deleted.
class OpenFile {
 public:
  static std::expected<std::shared_ptr<OpenFile>, TraceError> open(
      const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return std::unexpected(file_error(path, {errno, std::generic_category()}));
    auto file = std::shared_ptr<OpenFile>(new OpenFile(fd));
    if (fstat(fd, &file->facts_) != 0)
      return std::unexpected(file_error(path, {errno, std::generic_category()}));
    return file;
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(facts_.st_size); }

  // Sends a part of [offset, offset + length). Returns false when the client has disconnected
  // or the file has changed; the truncated response signals the error.
  bool send(std::uint64_t offset, std::uint64_t length, httplib::DataSink& sink) {
    buffer_.resize(std::min<std::uint64_t>(length, kReadBytes));
    const ssize_t got = pread(fd_, buffer_.data(), buffer_.size(), static_cast<off_t>(offset));
    if (got <= 0 || changed()) return false;
    return sink.write(buffer_.data(), static_cast<std::size_t>(got));
  }

 private:
  explicit OpenFile(int fd) : fd_(fd) {}
  bool changed() const {
    struct stat now{};
    return fstat(fd_, &now) != 0 || now.st_size != facts_.st_size ||
           now.st_mtim.tv_sec != facts_.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != facts_.st_mtim.tv_nsec;
  }

  const int fd_;
  struct stat facts_{};
  std::vector<char> buffer_;
};

// `held`: of a session; none for a snapshot.
void send_file(Response& response, std::shared_ptr<OpenFile> file, ByteRange range,
               SessionStore::Lease held) {
  response.set_content_provider(
      range.bytes, kType,
      [file = std::move(file), held = std::move(held), first = range.first](
          std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        return file->send(first + offset, length, sink);
      });
}

std::string range_of(const Request& request, const Response& response) {
  // If-Range does not match: send the whole file.
  const std::string condition = request.get_header_value("If-Range");
  if (!condition.empty() && condition != response.get_header_value("ETag")) return {};
  return request.get_header_value(kRangeField);
}

// Sends the file of an ended session.
void send_ended(const Request& request, Response& response, const SessionFile& session,
                SessionStore::Lease held) {
  auto file = OpenFile::open(session.path);
  if (!file) return respond(response, problem_of(file.error()));
  response.set_header("Accept-Ranges", "bytes");
  const std::uint64_t size = (*file)->bytes();
  const auto range = byte_range(range_of(request, response), size);
  if (!range) {
    respond(
        response,
        Problem{ErrorCode::BadRequest,
                std::format("The range starts after the end of the file ({} bytes).", size), 416});
    response.set_header("Content-Range", std::format("bytes */{}", size));
    return;
  }
  response.status = range->bytes == size ? 200 : 206;
  if (response.status == 206) {
    response.set_header("Content-Range", std::format("bytes {}-{}/{}", range->first,
                                                     range->first + range->bytes - 1, size));
  }
  send_file(response, *std::move(file), *range, std::move(held));
}

// Sends a snapshot of a session that is being recorded, or that still has a WAL.
void send_snapshot(Response& response, const SessionFile& session, SessionStore& sessions,
                   Retention& retention, std::uint64_t bytes) {
  auto claim = retention.claim(bytes);
  if (!claim) return respond(response, claim.error());
  std::uint64_t copied_bytes = 0;
  const auto room = [&](std::uint64_t written) -> std::expected<void, TraceError> {
    const auto rejected = claim->before_write(written - std::exchange(copied_bytes, written));
    if (!rejected) return {};
    return std::unexpected(TraceError{TraceError::Kind::DiskFull, rejected->detail});
  };
  auto folder = WorkFolder::make(sessions.folder());
  if (!folder) return respond(response, problem_of(folder.error()));
  const auto path = folder->path() / "snapshot.ttrace";
  if (const auto copied = copy_session(session.path, path, room); !copied)
    return respond(response, problem_of(copied.error()));
  auto file = OpenFile::open(path);
  if (!file) return respond(response, problem_of(file.error()));
  const ByteRange all{.first = 0, .bytes = (*file)->bytes()};
  // The folder is deleted now; the open file remains readable.
  send_file(response, *std::move(file), all, nullptr);
}

void download(const Request& request, Response& response, SessionStore& sessions,
              Retention& retention) {
  const std::string& id = request.path_params.at("id");
  const auto session = sessions.file(id);
  if (!session) return respond(response, problem_of(session.error()));
  if (not_modified(request, response, sessions.tag(id), StrongEtag::Yes)) return;
  response.set_header("Content-Disposition", std::format("attachment; filename=\"{}.ttrace\"", id));
  SessionStore::Lease held = sessions.lease(*session);
  const auto entry = sessions.entry(id);
  if (!entry) return respond(response, problem_of(entry.error()));
  std::error_code none;
  // Until it is left, WAL mode is noted in the file, too: the file is not what it will be.
  const bool in_wal_mode = std::filesystem::exists(session->path.string() + "-wal", none);
  const bool running = entry->overview && entry->overview->info.state == SessionState::Running;
  if (running || in_wal_mode) {
    // The size is unknown before the snapshot is made.
    if (request.method == "HEAD")
      return response.set_content_provider(kType,
                                           [](std::size_t, httplib::DataSink&) { return false; });
    return send_snapshot(response, *session, sessions, retention, entry->file_bytes);
  }
  send_ended(request, response, *session, std::move(held));
}

// 0 when Content-Length is absent.
std::uint64_t announced_bytes(const Request& request) {
  return parse_number<std::uint64_t>(request.get_header_value("Content-Length")).value_or(0);
}

// The media type without parameters, case-insensitive.
ImportForm form_of(const Request& request) {
  std::string type = request.get_header_value("Content-Type");
  type.resize(std::min(type.size(), type.find_first_of("; \t")));
  type = fold_case(type);
  return type == "application/x-ndjson" ? ImportForm::Log
         : type == "application/x-tar"  ? ImportForm::RunFolder
                                        : ImportForm::File;
}

void import_session(const Request& request, Response& response, const httplib::ContentReader& body,
                    SessionStore& sessions, Retention& retention) {
  auto incoming =
      SessionImport::begin(sessions, retention, announced_bytes(request), form_of(request));
  if (!incoming) return respond(response, incoming.error());
  std::optional<Problem> problem;
  const bool whole = body([&](const char* data, std::size_t bytes) {
    if (auto added = incoming->add({data, bytes}); !added) problem = added.error();
    return !problem;
  });
  if (problem) return respond(response, *problem);
  if (!whole) {
    return respond(
        response, Problem{ErrorCode::BadRequest, "The upload is incomplete. Send the file again."});
  }
  const auto taken = incoming->finish(while_connected(request));
  if (!taken) return respond(response, taken.error());
  response.set_header("Location", "/api/v1/sessions/" + taken->session.id);
  respond(response, to_json(taken->session), taken->is_new ? 201 : 200);
}

}  // namespace

void add_session_file_routes(httplib::Server& http, SessionStore& sessions, Retention& retention) {
  http.Get("/api/v1/sessions/:id/file",
           [&sessions, &retention](const Request& request, Response& response) {
             download(request, response, sessions, retention);
           });
  http.Post("/api/v1/sessions", [&sessions, &retention](const Request& request, Response& response,
                                                        const httplib::ContentReader& body) {
    import_session(request, response, body, sessions, retention);
  });
}

}  // namespace tt
