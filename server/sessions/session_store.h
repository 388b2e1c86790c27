// The sessions of this server: list, overview, readers and file operations. The files are
// authoritative. The store keeps a small row of every session for the list, and the complete
// entries of the sessions that were asked for last, up to kMaxEntryBytes. Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "api/json/session_json.h"
#include "server/sessions/session_files.h"
#include "server/sessions/session_query.h"
#include "server/sessions/session_trash.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

class SessionStore {
 public:
  static constexpr std::size_t kMaxEntryBytes = 2U << 20;  // about 250 entries

  // `elsewhere`: session files, and folders with session files, opened read-only.
  explicit SessionStore(std::filesystem::path folder,
                        std::vector<std::filesystem::path> external = {},
                        UtcClock now = utc_now_ns);

  // Lists sessions, including those being recorded. An unreadable file is listed with its
  // error. A file is read only when it has changed since the last read.
  std::expected<Page<SessionEntryPtr>, TraceError> list(const SessionQuery& query);
  std::expected<SessionEntry, TraceError> entry(const std::string& id);
  std::expected<SessionReader, TraceError> open(const std::string& id) const;
  std::expected<SessionFile, TraceError> file(const std::string& id) const;
  // While a lease exists, the session's file keeps its form. Hold one while the file is read by its
  // path; open() adds one to the reader. If a session ended while it was read, its file is still in
  // WAL mode, and the end of the last lease makes it a single file.
  using Lease = std::shared_ptr<const void>;
  Lease lease(const SessionFile& file) const;
  // The same for all sessions without leases, deleted ones included. WithWal, once a second: those
  // with a WAL beside them. All, when the server stops: also those whose WAL a reader removed.
  enum class FinishFiles : bool { WithWal, All };
  void finish_files(FinishFiles which = FinishFiles::WithWal);
  // Identifies the state of the session file and the build of this program: results are the
  // same as long as the tag is the same. nullopt while the session is being recorded, and when
  // it does not exist or cannot be read. Uses the size and time of the file, not its content.
  std::optional<std::string> tag(const std::string& id);

  // The functions below change files: one at a time, and only files in the data folder (else
  // NotManaged) of sessions that have ended (else Running).
  std::expected<SessionEntry, TraceError> rename(const std::string& id, const std::string& title);
  std::expected<DeletedSession, TraceError> remove(const std::string& id);
  std::expected<SessionEntry, TraceError> restore(const std::string& id);
  // Deletes permanently.
  std::expected<void, TraceError> erase(const std::string& id);
  // Adds a file that is on the file system of the data folder and has passed check_session().
  // Keeps its id if free, otherwise assigns a new one. A byte-identical session is added only
  // once.
  struct ImportResult {
    SessionEntry session;
    bool is_new = true;
  };
  std::expected<ImportResult, TraceError> take(const std::filesystem::path& file);

  const std::filesystem::path& folder() const { return files_.folder(); }
  SessionTrash& trash() { return trash_; }

  // Of all sessions, in no particular order that changes while they stay the same.
  std::expected<std::vector<SessionRowPtr>, TraceError> rows();

  // Sessions in the data folder, whoever recorded them.
  struct Own {
    SessionRowPtr session;
    std::int64_t changed_utc_ns = 0;  // last write to its file
  };
  std::expected<std::vector<Own>, TraceError> own();

 private:
  // Detects changes of the file and of its WAL.
  struct Stamp {
    std::uint64_t inode = 0, bytes = 0, wal_bytes = 0;
    std::int64_t changed = 0, wal_changed = 0;  // Unix time, ns
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct KnownRow {
    Stamp stamp;
    SessionRowPtr row;
  };
  struct KnownEntry {
    std::string path;
    Stamp stamp;
    SessionEntryPtr entry;
    std::size_t bytes = 0;
  };

  // Leases of this process, by path. Shared, because a reader may outlive the store.
  struct Readers {
    void finish(const std::filesystem::path& path);
    std::mutex mutex, finish_mutex;  // finish_mutex is locked first
    std::map<std::filesystem::path, int> of;
  };

  static std::optional<Stamp> stamp_of(const std::filesystem::path& path);
  // Return null when the file does not exist any more.
  SessionRowPtr row_of(const SessionFile& file, const Stamp& stamp);
  // Calls each(file, stamp, row) for the sessions whose file is wanted(file). Requires scan_mutex_.
  template <class Wanted, class Each>
  std::expected<void, TraceError> for_each_row(Wanted wanted, Each each);
  SessionEntryPtr entry_of(const SessionFile& file, const Stamp& stamp);
  SessionEntryPtr entry_of(const std::string& id);
  void keep(const std::string& path, const Stamp& stamp, const SessionEntryPtr& entry);
  void forget_entry(const std::string& path);  // requires mutex_
  std::expected<SessionFile, TraceError> own_file(const std::string& id) const;
  std::expected<SessionFile, TraceError> ended_file(const std::string& id) const;
  std::string free_id(const std::string& wanted) const;

  const SessionFiles files_;
  SessionTrash trash_;
  const std::shared_ptr<Readers> readers_ = std::make_shared<Readers>();
  const std::string program_;  // build of this program; part of tag()
  std::mutex change_mutex_;    // held while files are renamed or rewritten
  std::mutex scan_mutex_;      // one thread reads new files, the others then find them cached
  std::mutex mutex_;           // guards the members below
  std::map<std::string, KnownRow> rows_;  // by path
  std::list<KnownEntry> entries_;         // the last used first
  std::map<std::string, std::list<KnownEntry>::iterator> entry_by_path_;
  std::size_t entry_bytes_ = 0;
  // Of sessions that grow, which a page asks for every 2 s. By path.
  std::map<std::string, RequestsSoFar> growing_;
};

}  // namespace tt
