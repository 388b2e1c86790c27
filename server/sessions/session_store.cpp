#include "server/sessions/session_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <format>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "tracer/format/file/session_edit.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

TraceError no_such_session(const std::string& id) {
  return {TraceError::Kind::NotFound,
          "Session \"" + id + "\" not found. GET /api/v1/sessions lists the sessions."};
}

std::int64_t ns_of(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

// Identifies the build of the program: another build is another file.
std::string this_program() {
  struct stat facts{};
  if (stat("/proc/self/exe", &facts) != 0) return {};
  return std::format("{:x}", ns_of(facts.st_mtim));
}

}  // namespace

SessionStore::SessionStore(fs::path folder, std::vector<fs::path> external, UtcClock now)
    : files_(std::move(folder), std::move(external)),
      trash_(files_.folder(), std::move(now)),
      program_(this_program()) {}

std::optional<SessionStore::Stamp> SessionStore::stamp_of(const fs::path& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) return std::nullopt;
  Stamp stamp{.inode = facts.st_ino,
              .bytes = static_cast<std::uint64_t>(facts.st_size),
              .changed = ns_of(facts.st_mtim)};
  if (stat((path.string() + "-wal").c_str(), &facts) == 0) {
    stamp.wal_bytes = static_cast<std::uint64_t>(facts.st_size);
    stamp.wal_changed = ns_of(facts.st_mtim);
  }
  return stamp;
}

SessionEntryPtr SessionStore::entry_of(const SessionFile& file, const Stamp& stamp) {
  {
    const std::scoped_lock lock(mutex_);
    const auto known = cache_.find(file.path);
    if (known != cache_.end() && known->second.stamp == stamp) return known->second.entry;
  }
  SessionEntry entry{.id = file.id,
                     .file_bytes = stamp.bytes + stamp.wal_bytes,
                     .overview = std::nullopt,
                     .error = {}};
  const auto reader = SessionReader::open(file.path);
  if (auto overview =
          reader ? session_overview(*reader)
                 : std::expected<SessionOverview, TraceError>(std::unexpected(reader.error()))) {
    entry.overview = *std::move(overview);
  } else {
    if (overview.error().kind == TraceError::Kind::NotFound) return nullptr;
    entry.error = overview.error().message;
  }
  auto shared = std::make_shared<const SessionEntry>(std::move(entry));
  const std::scoped_lock lock(mutex_);
  cache_[file.path] = {.stamp = stamp, .entry = shared};
  return shared;
}

std::expected<SessionFile, TraceError> SessionStore::file(const std::string& id) const {
  auto file = files_.find(id);
  if (!file) return std::unexpected(no_such_session(id));
  return *std::move(file);
}

std::expected<SessionReader, TraceError> SessionStore::open(const std::string& id) const {
  return file(id).and_then([](const SessionFile& file) { return SessionReader::open(file.path); });
}

std::expected<SessionEntry, TraceError> SessionStore::entry(const std::string& id) {
  const auto found = file(id);
  if (!found) return std::unexpected(found.error());
  const auto stamp = stamp_of(found->path);
  const SessionEntryPtr entry = stamp ? entry_of(*found, *stamp) : nullptr;
  if (!entry) return std::unexpected(no_such_session(id));
  return *entry;
}

std::optional<std::string> SessionStore::tag(const std::string& id) {
  const auto found = files_.find(id);
  if (!found) return std::nullopt;
  const auto stamp = stamp_of(found->path);
  const SessionEntryPtr entry = stamp ? entry_of(*found, *stamp) : nullptr;
  if (!entry || !entry->overview || entry->overview->info.state == SessionState::Running)
    return std::nullopt;
  return std::format("{:x}-{:x}-{:x}-{:x}-{:x}-{}", stamp->inode, stamp->changed, stamp->bytes,
                     stamp->wal_changed, stamp->wal_bytes, program_);
}

std::expected<Page<SessionEntryPtr>, TraceError> SessionStore::list(const SessionQuery& query) {
  const auto files = files_.all();
  if (!files) return std::unexpected(files.error());
  std::vector<SessionEntryPtr> entries;
  std::set<fs::path> there;
  const std::scoped_lock scan(scan_mutex_);
  for (const SessionFile& file : *files) {
    // The file may have been removed since the folder was listed.
    const auto stamp = stamp_of(file.path);
    SessionEntryPtr entry = stamp ? entry_of(file, *stamp) : nullptr;
    if (!entry) continue;
    entries.push_back(std::move(entry));
    there.insert(file.path);
  }
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(cache_, [&](const auto& known) { return !there.contains(known.first); });
  }
  return select_sessions(std::move(entries), query);
}

std::expected<std::vector<SessionStore::Own>, TraceError> SessionStore::own() {
  const auto files = files_.all();
  if (!files) return std::unexpected(files.error());
  std::vector<Own> own;
  const std::scoped_lock scan(scan_mutex_);
  for (const SessionFile& file : *files) {
    const auto stamp = file.owned ? stamp_of(file.path) : std::nullopt;
    SessionEntryPtr entry = stamp ? entry_of(file, *stamp) : nullptr;
    if (entry) own.push_back({.session = std::move(entry), .changed_utc_ns = stamp->changed});
  }
  return own;
}

}  // namespace tt
