// SessionStore: operations that change files. One at a time; readers are not blocked.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <format>
#include <fstream>
#include <system_error>
#include <utility>

#include "server/sessions/move_file.h"
#include "server/sessions/session_store.h"
#include "tracer/format/file/session_edit.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

TraceError running(const std::string& id) {
  return {TraceError::Kind::Running,
          std::format("\"{}\" is being recorded. Wait until it has ended, or end it with DELETE "
                      "/api/v1/generate/{}.",
                      id, id)};
}

// Sets a later modification time, so that two changes within one tick of the file system clock
// are distinguishable.
void advance_time(const fs::path& file, fs::file_time_type before) {
  std::error_code ignored;
  const auto now = fs::last_write_time(file, ignored);
  fs::last_write_time(file, std::max(now, before + std::chrono::nanoseconds(1)), ignored);
}

bool equal_files(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  if (fs::file_size(a, failed) != fs::file_size(b, failed) || failed) return false;
  std::ifstream one(a, std::ios::binary), other(b, std::ios::binary);
  std::vector<char> left(1 << 16), right(1 << 16);
  while (one && other) {
    one.read(left.data(), static_cast<std::streamsize>(left.size()));
    other.read(right.data(), static_cast<std::streamsize>(right.size()));
    if (one.gcount() != other.gcount() ||
        !std::equal(left.begin(), left.begin() + one.gcount(), right.begin())) {
      return false;
    }
  }
  return one.eof() && other.eof();
}

// Syncs the file before it gets its final name: after a power loss it is complete or absent.
std::expected<void, TraceError> flush(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = fd >= 0 && fsync(fd) == 0;
  const std::error_code error(errno, std::generic_category());
  if (fd >= 0) close(fd);
  if (!done) return std::unexpected(file_error(path, error));
  return {};
}

std::expected<SessionInfo, TraceError> info_of(const fs::path& file) {
  return SessionReader::open(file).and_then(
      [](const SessionReader& reader) { return reader.info(); });
}

}  // namespace

std::expected<SessionFile, TraceError> SessionStore::own_file(const std::string& id) const {
  return file(id).and_then([](SessionFile&& file) -> std::expected<SessionFile, TraceError> {
    if (file.owned) return std::move(file);
    return std::unexpected(
        TraceError{TraceError::Kind::NotManaged,
                   std::format("{} was opened read-only. Change or delete the file itself, or "
                               "import it: POST /api/v1/sessions.",
                               file.path.string())});
  });
}

// A session may be removed unless it is being recorded; so may a file that is not a readable
// session.
std::expected<SessionFile, TraceError> SessionStore::ended_file(const std::string& id) const {
  return own_file(id).and_then([&](SessionFile&& file) -> std::expected<SessionFile, TraceError> {
    const auto recorded = is_being_recorded(file.path);
    if (recorded && *recorded) return std::unexpected(running(id));
    if (recorded || recorded.error().kind == TraceError::Kind::Damaged ||
        recorded.error().kind == TraceError::Kind::NotASession ||
        recorded.error().kind == TraceError::Kind::NewerVersion)
      return std::move(file);
    return std::unexpected(recorded.error());
  });
}

std::expected<SessionEntry, TraceError> SessionStore::rename(const std::string& id,
                                                             const std::string& title) {
  const std::scoped_lock lock(change_mutex_);
  const auto file = own_file(id);
  if (!file) return std::unexpected(file.error());
  std::error_code ignored;
  const auto before = fs::last_write_time(file->path, ignored);
  const auto renamed = rename_session(file->path, title);
  if (!renamed && renamed.error().kind == TraceError::Kind::Running)
    return std::unexpected(running(id));
  if (!renamed) return std::unexpected(renamed.error());
  advance_time(file->path, before);
  return entry(id);
}

std::expected<DeletedSession, TraceError> SessionStore::remove(const std::string& id) {
  const std::scoped_lock lock(change_mutex_);
  return ended_file(id).and_then(
      [&](const SessionFile& file) { return trash_.put(id, file.path); });
}

std::expected<SessionEntry, TraceError> SessionStore::restore(const std::string& id) {
  const std::scoped_lock lock(change_mutex_);
  if (!is_session_id(id)) return std::unexpected(file(id).error());
  auto restored = trash_.restore(id, files_.path_of(id));
  if (!restored && restored.error().kind == TraceError::Kind::NotFound && file(id)) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("The session \"{}\" is not deleted: there is nothing to restore.", id)});
  }
  return restored.and_then([&] { return entry(id); });
}

std::expected<void, TraceError> SessionStore::erase(const std::string& id) {
  const std::scoped_lock lock(change_mutex_);
  const auto file = ended_file(id);
  if (!file) return std::unexpected(file.error());
  return remove_session_file(file->path);
}

SessionStore::Lease SessionStore::lease(const SessionFile& file) const {
  struct Hold {
    Hold(std::shared_ptr<Readers> of, const SessionFile& session)
        : readers(std::move(of)), path(session.path), owned(session.owned) {
      const std::scoped_lock lock(readers->mutex);
      ++readers->of[path];
    }
    ~Hold() {
      {
        const std::scoped_lock lock(readers->mutex);
        const auto at = readers->of.find(path);
        if (--at->second > 0) return;
        readers->of.erase(at);
      }
      if (owned) readers->finish(path);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    std::shared_ptr<Readers> readers;
    fs::path path;
    bool owned;
  };
  return std::make_shared<const Hold>(readers_, file);
}

namespace {

// By the header of the file: the last reader may have removed the WAL, but not left its mode.
// Opening a FIFO would wait for a writer.
bool is_in_wal_mode(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  constexpr std::streamoff kReadVersion = 19;  // 2: WAL
  std::ifstream file(path, std::ios::binary);
  file.seekg(kReadVersion);
  return file.get() == 2;
}

}  // namespace

// One at a time: two connections would keep each other from leaving WAL mode.
void SessionStore::Readers::finish(const fs::path& path) {
  const std::scoped_lock one(finish_mutex);
  {
    const std::scoped_lock lock(mutex);
    if (of.contains(path)) return;
  }
  std::error_code none;
  const fs::path wal = path.string() + "-wal";
  if (!fs::exists(wal, none) && !is_in_wal_mode(path)) return;
  if (fs::exists(path, none)) {
    (void)checkpoint_session(path);  // not while it is being recorded
  } else if (fs::file_size(wal, none) == 0 && !none) {
    // A reader opened the file while it was deleted.
    fs::remove(wal, none);
    fs::remove(path.string() + "-shm", none);
  }
}

void SessionStore::finish_files(FinishFiles which) {
  std::vector<fs::path> open;
  std::error_code failed;
  for (fs::directory_iterator file(folder(), failed), end; !failed && file != end;
       file.increment(failed)) {
    std::string name = file->path().string();
    if (name.ends_with(".ttrace-wal")) {
      name.resize(name.size() - std::string_view("-wal").size());
      open.emplace_back(name);
    } else if (which == FinishFiles::All && name.ends_with(".ttrace")) {
      open.emplace_back(name);
    }
  }
  // Deleted while they were read, or while they waited for this.
  for (const DeletedSession& deleted : trash_.all()) open.push_back(deleted.path);
  for (const fs::path& path : open) readers_->finish(path);
}

std::string SessionStore::free_id(const std::string& wanted) const {
  constexpr std::size_t kRoomForNumber = 190;
  std::string id = wanted;
  for (int n = 2; files_.find(id); ++n)
    id = std::format("{}-{}", wanted.substr(0, kRoomForNumber), n);
  return id;
}

std::expected<SessionStore::ImportResult, TraceError> SessionStore::take(const fs::path& file) {
  const auto info = info_of(file);
  if (!info) return std::unexpected(info.error());
  const std::string wanted = is_session_id(info->id) ? info->id : "imported";

  const std::scoped_lock lock(change_mutex_);
  const auto there = files_.find(wanted);
  if (there && there->owned && equal_files(file, there->path)) {
    auto same = entry(wanted);
    if (!same) return std::unexpected(same.error());
    return ImportResult{.session = *std::move(same), .is_new = false};
  }
  const std::string id = free_id(wanted);
  const auto ready = assign_session_id(file, id).and_then([&] { return flush(file); });
  if (!ready) return std::unexpected(ready.error());
  if (const auto moved = move_file(file, files_.path_of(id)); !moved)
    return std::unexpected(file_error(files_.path_of(id), moved.error()));
  (void)flush(folder());
  auto taken = entry(id);
  if (!taken) return std::unexpected(taken.error());
  return ImportResult{.session = *std::move(taken), .is_new = true};
}

}  // namespace tt
