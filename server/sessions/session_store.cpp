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
          "Session \"" + id + "\" not found: it was deleted, or it is of another server."};
}

constexpr std::size_t kMaxGrowing = 64;  // sessions

std::int64_t ns_of(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

std::size_t memory_bytes(const SessionEntry& entry) {
  const auto heap = [](const std::string& text) {
    return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
  };
  std::size_t bytes = sizeof entry + heap(entry.id) + heap(entry.error);
  if (!entry.overview) return bytes;
  const SessionInfo& info = entry.overview->info;
  bytes += heap(info.id) + heap(info.title) + heap(info.error);
  bytes += info.model_files.capacity() * sizeof(ModelFile);
  for (const ModelFile& file : info.model_files) bytes += heap(file.path) + heap(file.header_hash);
  bytes += info.facts.capacity() * sizeof info.facts.front();
  for (const auto& [name, value] : info.facts) bytes += heap(name) + heap(value);
  return bytes;
}

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

SessionRowPtr SessionStore::row_of(const SessionFile& file, const Stamp& stamp) {
  const auto known = [&]() -> SessionRowPtr {
    const std::scoped_lock lock(mutex_);
    const auto found = rows_.find(file.path.string());
    return found != rows_.end() && found->second.stamp == stamp ? found->second.row : nullptr;
  };
  if (SessionRowPtr row = known()) return row;
  const SessionEntryPtr entry = entry_of(file, stamp);
  return entry ? std::make_shared<const SessionRow>(tt::row_of(*entry)) : nullptr;
}

SessionEntryPtr SessionStore::entry_of(const SessionFile& file, const Stamp& stamp) {
  const std::string path = file.path.string();
  {
    const std::scoped_lock lock(mutex_);
    const auto known = entry_by_path_.find(path);
    if (known != entry_by_path_.end() && known->second->stamp == stamp) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return known->second->entry;
    }
  }
  SessionEntry entry{.id = file.id,
                     .file_bytes = stamp.bytes + stamp.wal_bytes,
                     .overview = std::nullopt,
                     .error = {}};
  RequestsSoFar so_far;
  {
    const std::scoped_lock lock(mutex_);
    if (auto known = growing_.extract(path)) so_far = std::move(known.mapped());
  }
  const Lease held = lease(file);
  const auto reader = SessionReader::open(file.path);
  if (auto overview =
          reader ? session_overview(*reader, &so_far)
                 : std::expected<SessionOverview, TraceError>(std::unexpected(reader.error()))) {
    entry.overview = *std::move(overview);
  } else {
    if (overview.error().kind == TraceError::Kind::NotFound) return nullptr;
    entry.error = overview.error().message;
  }
  if (entry.overview && entry.overview->info.state == SessionState::Running && so_far.steps > 0) {
    const std::scoped_lock lock(mutex_);
    if (growing_.size() < kMaxGrowing) growing_[path] = std::move(so_far);
  }
  auto shared = std::make_shared<const SessionEntry>(std::move(entry));
  keep(path, stamp, shared);
  return shared;
}

void SessionStore::keep(const std::string& path, const Stamp& stamp, const SessionEntryPtr& entry) {
  auto row = std::make_shared<const SessionRow>(tt::row_of(*entry));
  const std::size_t bytes = memory_bytes(*entry);
  const std::scoped_lock lock(mutex_);
  rows_[path] = {.stamp = stamp, .row = std::move(row)};
  forget_entry(path);
  entries_.push_front({.path = path, .stamp = stamp, .entry = entry, .bytes = bytes});
  entry_by_path_[path] = entries_.begin();
  entry_bytes_ += bytes;
  while (entry_bytes_ > kMaxEntryBytes) forget_entry(std::string(entries_.back().path));
}

void SessionStore::forget_entry(const std::string& path) {
  const auto known = entry_by_path_.find(path);
  if (known == entry_by_path_.end()) return;
  entry_bytes_ -= known->second->bytes;
  entries_.erase(known->second);
  entry_by_path_.erase(known);
}

std::expected<SessionFile, TraceError> SessionStore::file(const std::string& id) const {
  auto file = files_.find(id);
  if (!file) return std::unexpected(no_such_session(id));
  return *std::move(file);
}

std::expected<SessionReader, TraceError> SessionStore::open(const std::string& id) const {
  return file(id).and_then([this](const SessionFile& file) {
    Lease held = lease(file);
    return SessionReader::open(file.path).transform([&](SessionReader&& reader) {
      reader.hold(std::move(held));
      return std::move(reader);
    });
  });
}

SessionEntryPtr SessionStore::entry_of(const std::string& id) {
  const auto found = files_.find(id);
  const auto stamp = found ? stamp_of(found->path) : std::nullopt;
  return stamp ? entry_of(*found, *stamp) : nullptr;
}

std::expected<SessionEntry, TraceError> SessionStore::entry(const std::string& id) {
  const SessionEntryPtr entry = entry_of(id);
  if (!entry) return std::unexpected(no_such_session(id));
  return *entry;
}

std::optional<std::string> SessionStore::tag(const std::string& id) {
  const auto found = files_.find(id);
  if (!found) return std::nullopt;
  const auto stamp = stamp_of(found->path);
  const SessionRowPtr row = stamp ? row_of(*found, *stamp) : nullptr;
  if (!row || !row->readable() || row->running()) return std::nullopt;
  return std::format("{:x}-{:x}-{:x}-{:x}-{:x}-{}", stamp->inode, stamp->changed, stamp->bytes,
                     stamp->wal_changed, stamp->wal_bytes, program_);
}

template <class Wanted, class Each>
std::expected<void, TraceError> SessionStore::for_each_row(Wanted wanted, Each each) {
  const auto files = files_.all();
  if (!files) return std::unexpected(files.error());
  for (const SessionFile& file : *files) {
    // The file may have been removed since the folder was listed.
    const auto stamp = wanted(file) ? stamp_of(file.path) : std::nullopt;
    SessionRowPtr row = stamp ? row_of(file, *stamp) : nullptr;
    if (row) each(file, *stamp, std::move(row));
  }
  return {};
}

std::expected<Page<SessionEntryPtr>, TraceError> SessionStore::list(const SessionQuery& query) {
  std::vector<SessionRowPtr> rows;
  std::set<std::string> there;
  const std::scoped_lock scan(scan_mutex_);
  const auto read = for_each_row([](const SessionFile&) { return true; },
                                 [&](const SessionFile& file, const Stamp&, SessionRowPtr row) {
                                   rows.push_back(std::move(row));
                                   there.insert(file.path.string());
                                 });
  if (!read) return std::unexpected(read.error());
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(rows_, [&](const auto& known) { return !there.contains(known.first); });
    std::vector<std::string> gone;
    for (const KnownEntry& known : entries_)
      if (!there.contains(known.path)) gone.push_back(known.path);
    for (const std::string& path : gone) forget_entry(path);
  }
  const Page<SessionRowPtr> selected = select_sessions(std::move(rows), query);
  Page<SessionEntryPtr> page{.total = selected.total, .rows = {}};
  for (const SessionRowPtr& row : selected.rows)
    if (SessionEntryPtr entry = entry_of(row->id)) page.rows.push_back(std::move(entry));
  return page;
}

std::expected<std::vector<SessionRowPtr>, TraceError> SessionStore::rows() {
  std::vector<SessionRowPtr> rows;
  const std::scoped_lock scan(scan_mutex_);
  const auto read = for_each_row(
      [](const SessionFile&) { return true; },
      [&](const SessionFile&, const Stamp&, SessionRowPtr row) { rows.push_back(std::move(row)); });
  if (!read) return std::unexpected(read.error());
  return rows;
}

std::expected<std::vector<SessionStore::Own>, TraceError> SessionStore::own() {
  std::vector<Own> own;
  const std::scoped_lock scan(scan_mutex_);
  const auto read =
      for_each_row([](const SessionFile& file) { return file.owned; },
                   [&](const SessionFile&, const Stamp& stamp, SessionRowPtr row) {
                     own.push_back({.session = std::move(row), .changed_utc_ns = stamp.changed});
                   });
  if (!read) return std::unexpected(read.error());
  return own;
}

}  // namespace tt
