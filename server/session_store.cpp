#include "server/session_store.h"

#include <algorithm>
#include <chrono>
#include <format>
#include <system_error>
#include <utility>

namespace tt {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kExtension = ".ttrace";

TraceError no_such_session(const std::string& id) {
  return {TraceError::Kind::NotFound,
          "There is no session \"" + id + "\". GET /api/v1/sessions lists them."};
}

std::int64_t ns_of(fs::file_time_type time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

SessionStore::SessionStore(fs::path folder)
    : folder_(std::move(folder)), program_([] {
        std::error_code none;
        return std::format("{:x}", ns_of(fs::last_write_time("/proc/self/exe", none)));
      }()) {}

bool is_session_id(std::string_view id) {
  constexpr std::size_t kLongest = 200;
  return !id.empty() && id.size() <= kLongest && id.front() != '.' &&
         std::ranges::all_of(id, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

fs::path SessionStore::path_of(const std::string& id) const {
  return folder_ / (id + std::string(kExtension));
}

std::expected<SessionStore::Stamp, TraceError> SessionStore::stamp_of(const fs::path& path) {
  std::error_code failed, none;
  Stamp stamp;
  stamp.bytes = fs::file_size(path, failed);
  if (!failed) stamp.changed = fs::last_write_time(path, failed);
  if (failed) return std::unexpected(no_such_session(path.stem().string()));
  const fs::path wal = path.string() + "-wal";
  if (fs::exists(wal, none)) {
    const std::uintmax_t bytes = fs::file_size(wal, none);
    stamp.wal_bytes = none ? 0 : bytes;
    stamp.wal_changed = fs::last_write_time(wal, none);
  }
  return stamp;
}

std::expected<SessionReader, TraceError> SessionStore::open(const std::string& id) const {
  if (!is_session_id(id)) return std::unexpected(no_such_session(id));
  const fs::path path = path_of(id);
  std::error_code none;
  if (!fs::exists(path, none)) return std::unexpected(no_such_session(id));
  return SessionReader::open(path);
}

std::expected<SessionEntry, TraceError> SessionStore::entry(const std::string& id) {
  if (!is_session_id(id)) return std::unexpected(no_such_session(id));
  const auto stamp = stamp_of(path_of(id));
  if (!stamp) return std::unexpected(stamp.error());
  {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.find(id);
    if (known != known_.end() && known->second.stamp == *stamp) return known->second.entry;
  }
  SessionEntry entry{.id = id,
                     .file_bytes = stamp->bytes + stamp->wal_bytes,
                     .overview = std::nullopt,
                     .error = {}};
  const auto reader = SessionReader::open(path_of(id));
  if (auto overview =
          reader ? session_overview(*reader)
                 : std::expected<SessionOverview, TraceError>(std::unexpected(reader.error()))) {
    entry.overview = *std::move(overview);
  } else {
    entry.error = overview.error().message;
  }
  const std::scoped_lock lock(mutex_);
  known_[id] = {.stamp = *stamp, .entry = entry};
  return entry;
}

std::optional<std::string> SessionStore::tag(const std::string& id) {
  if (!is_session_id(id)) return std::nullopt;
  const auto stamp = stamp_of(path_of(id));
  const auto known = stamp ? entry(id) : std::unexpected(stamp.error());
  if (!known || !known->overview || known->overview->info.state == SessionState::Running)
    return std::nullopt;
  return std::format("{:x}-{:x}-{:x}-{:x}-{}", ns_of(stamp->changed), stamp->bytes,
                     ns_of(stamp->wal_changed), stamp->wal_bytes, program_);
}

std::expected<Page<SessionEntry>, TraceError> SessionStore::list(PageRange range) {
  std::vector<std::string> ids;
  std::error_code failed;
  for (fs::directory_iterator file(folder_, failed), end; !failed && file != end;
       file.increment(failed)) {
    const fs::path& path = file->path();
    if (path.extension() == kExtension && is_session_id(path.stem().string()))
      ids.push_back(path.stem().string());
  }
  if (failed) {
    return std::unexpected(
        TraceError{TraceError::Kind::Io,
                   "The folder of sessions, " + folder_.string() + ": " + failed.message()});
  }
  std::ranges::sort(ids, std::ranges::greater());

  Page<SessionEntry> page{.total = ids.size(), .rows = {}};
  for (std::uint64_t i = range.from; i < ids.size() && range.holds(i); ++i) {
    // Gone between the listing and the look: then it is not on the page.
    if (auto found = entry(ids[i])) page.rows.push_back(*std::move(found));
  }
  const std::scoped_lock lock(mutex_);
  std::erase_if(known_, [&](const auto& known) {
    return !std::ranges::binary_search(ids, known.first, std::ranges::greater());
  });
  return page;
}

}  // namespace tt
