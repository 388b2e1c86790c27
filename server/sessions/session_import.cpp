#include "server/sessions/session_import.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <format>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "api/exchange/import/import.h"
#include "api/exchange/run_folder/tar.h"
#include "server/sessions/move_file.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/name_of.h"

namespace tt {

namespace {

TraceError system_error(const std::filesystem::path& path) {
  return file_error(path, {errno, std::generic_category()});
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

// What the uploaded file is instead of a session, and what to send.
std::string not_a_session(const std::filesystem::path& path) {
  std::string begin(4, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), std::ssize(begin));
  if (file.gcount() == 0) return "The body is empty. Send the bytes of a session file (.ttrace).";
  if (begin == "GGUF") {
    return "The file is a model (GGUF), not a session. Put it into a folder of models: tt-server "
           "--models FOLDER.";
  }
  return "The file is not a session file (.ttrace). Send a log with Content-Type: "
         "application/x-ndjson, a run folder as application/x-tar.";
}

// A defect in an uploaded file is a client error: 422. The message must not contain the server
// path.
Problem problem_of_upload(TraceError error, const std::filesystem::path& path) {
  replace_all(error.message, path.string(), "The file");
  Problem problem = problem_of(error);
  const bool theirs = problem.error_code == ErrorCode::Damaged ||
                      problem.error_code == ErrorCode::NotASession ||
                      problem.error_code == ErrorCode::NewerVersion;
  if (theirs) problem.status = 422;
  return problem;
}

const char* file_name_of(ImportForm form) {
  static constexpr std::array kNames = {"upload.ttrace", "upload.ndjson", "upload.tar"};
  return name_of(kNames, form);
}

std::expected<void, Problem> to_expected(std::optional<Problem> rejected) {
  if (rejected) return std::unexpected(*std::move(rejected));
  return {};
}

// The quota applies to sessions, not to the source files of an import.
std::expected<void, Problem> check_size(const Retention& retention, ImportForm form,
                                        std::uint64_t bytes) {
  return to_expected(form == ImportForm::File ? retention.check_file_size(bytes) : std::nullopt);
}

Problem damaged(const std::vector<std::string>& problems) {
  return {
      ErrorCode::Damaged,
      std::format(
          "{}{}. Nothing was imported. Send the complete file again, or repair it with "
          "`sqlite3 FILE .recover`.",
          problems.front(),
          problems.size() > 1 ? std::format(", and {} more problems", problems.size() - 1) : ""),
      422};
}

}  // namespace

std::expected<SessionImport, Problem> SessionImport::begin(SessionStore& sessions,
                                                           Retention& retention,
                                                           std::uint64_t expected_bytes,
                                                           ImportForm form) {
  if (auto fits = check_size(retention, form, expected_bytes); !fits)
    return std::unexpected(fits.error());
  auto claim = retention.claim(expected_bytes);
  if (!claim) return std::unexpected(claim.error());
  auto folder = WorkFolder::make(sessions.folder());
  if (!folder) return std::unexpected(problem_of(folder.error()));
  const std::filesystem::path path = folder->path() / file_name_of(form);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return std::unexpected(problem_of(system_error(path)));
  return SessionImport(sessions, retention, *std::move(claim), *std::move(folder), file, form);
}

SessionImport::SessionImport(SessionStore& sessions, Retention& retention, Retention::Claim claim,
                             WorkFolder folder, int file, ImportForm form)
    : sessions_(sessions),
      retention_(retention),
      claim_(std::move(claim)),
      folder_(std::move(folder)),
      form_(form),
      path_(folder_.path() / file_name_of(form)),
      file_(file) {}

SessionImport::SessionImport(SessionImport&& other) noexcept
    : sessions_(other.sessions_),
      retention_(other.retention_),
      claim_(std::move(other.claim_)),
      folder_(std::move(other.folder_)),
      form_(other.form_),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)) {}

SessionImport::~SessionImport() {
  if (file_ >= 0) close(file_);
}

std::expected<void, Problem> SessionImport::add(std::span<const char> bytes) {
  bytes_ += bytes.size();
  if (auto fits = check_size(retention_, form_, bytes_); !fits) return fits;
  if (auto room = to_expected(claim_.before_write(bytes.size())); !room) return room;
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(problem_of(system_error(path_)));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

// Converts a log or run folder to a session file; path_ is the session file afterwards.
std::expected<void, Problem> SessionImport::convert(const ContinueCheck& wanted) {
  auto claim = retention_.claim(Retention::kBetweenChecks);
  if (!claim) return std::unexpected(claim.error());
  std::optional<Problem> full;
  const ContinueCheck keep_going = [&] {
    if (!full) full = claim->check();
    return !full && wanted();
  };
  // `full` is the reason why a conversion that it stopped has failed.
  const auto failed_with = [&](const Problem& problem) {
    return std::unexpected(full ? *std::move(full) : problem);
  };
  const auto session = folder_.path() / "imported.ttrace";  // default id when the source has none
  if (form_ == ImportForm::Log) {
    const auto made = exchange::import_log(path_, session, keep_going);
    if (!made) return failed_with(problem_of_upload(made.error(), path_));
  } else {
    const auto run = unpack(*claim, keep_going);
    if (!run) return failed_with(run.error());
    auto made = exchange::import_run_folder(*run, session, keep_going);
    if (!made) {
      replace_all(made.error().message, run->string() + "/", "");  // the file name is sufficient
      return failed_with(problem_of_upload(made.error(), path_));
    }
  }
  path_ = session;
  std::error_code failed;
  const std::uint64_t bytes = std::filesystem::file_size(session, failed);
  return failed ? std::unexpected(problem_of(file_error(session, failed)))
                : to_expected(retention_.check_file_size(bytes));
}

// Unpacks the archive, deletes it, and returns the folder.
std::expected<std::filesystem::path, Problem> SessionImport::unpack(
    Retention::Claim& claim, const ContinueCheck& keep_going) {
  auto run = folder_.path() / "run";
  std::error_code failed;
  std::filesystem::create_directory(run, failed);
  if (failed) return std::unexpected(problem_of(file_error(run, failed)));
  std::expected<void, Problem> room;
  const auto read = exchange::read_tar(
      path_, exchange::kImportedFiles, run,
      [&](std::uint64_t) -> std::expected<void, TraceError> {
        room = to_expected(claim.check());
        if (room) return {};
        return std::unexpected(TraceError{TraceError::Kind::DiskFull, room.error().detail});
      },
      keep_going);
  if (!room) return std::unexpected(room.error());
  if (!read) return std::unexpected(problem_of_upload(read.error(), path_));
  std::filesystem::remove(path_, failed);
  return run;
}

std::expected<SessionStore::ImportResult, Problem> SessionImport::finish(
    const ContinueCheck& keep_going) {
  const bool closed = close(std::exchange(file_, -1)) == 0;
  if (!closed) return std::unexpected(problem_of(system_error(path_)));
  if (form_ != ImportForm::File) {
    if (auto converted = convert(keep_going); !converted) return std::unexpected(converted.error());
  }
  auto problems = check_session(path_, keep_going);
  if (!problems) {
    if (problems.error().kind == TraceError::Kind::NotASession)
      problems.error().message = not_a_session(path_);
    return std::unexpected(problem_of_upload(problems.error(), path_));
  }
  if (!problems->empty()) {
    std::vector<std::string> told;
    for (const std::string& problem : *problems)
      told.push_back(problem_of_upload({TraceError::Kind::Damaged, problem}, path_).detail);
    return std::unexpected(damaged(told));
  }
  std::error_code failed;
  if (const auto bytes = std::filesystem::file_size(path_, failed); !failed)
    retention_.make_room(bytes);
  auto taken = sessions_.take(path_);
  if (!taken) return std::unexpected(problem_of_upload(taken.error(), path_));
  return *std::move(taken);
}

}  // namespace tt
