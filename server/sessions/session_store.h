// The sessions that this server has: which there are, what each says about
// itself, a reader for each, and what may be done to them. The files are the
// truth; what is kept here is only not to read them again. Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
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
  // `elsewhere`: session files and folders of them that are only read.
  explicit SessionStore(std::filesystem::path folder,
                        std::vector<std::filesystem::path> elsewhere = {},
                        UtcClock now = utc_now_ns);

  // One being recorded is listed, too; a file that cannot be read with the
  // reason. A file is read only when it changed since it was read last.
  std::expected<Page<SessionEntryPtr>, TraceError> list(const SessionQuery& query);
  std::expected<SessionEntry, TraceError> entry(const std::string& id);
  std::expected<SessionReader, TraceError> open(const std::string& id) const;
  std::expected<SessionFile, TraceError> file(const std::string& id) const;
  // Names the state that the session's file is in, and the program that answers
  // about it: as long as it is the same, so are the answers. None while it is
  // recorded, and of what is not there or cannot be read. Looks at the file's
  // size and time, not into it.
  std::optional<std::string> tag(const std::string& id);

  // All that follows changes files: one at a time, and only of the data folder
  // (NotOurs) and of sessions that have ended (Running).
  std::expected<SessionEntry, TraceError> rename(const std::string& id, const std::string& title);
  std::expected<DeletedSession, TraceError> remove(const std::string& id);
  std::expected<SessionEntry, TraceError> restore(const std::string& id);
  // Without a way back.
  std::expected<void, TraceError> erase(const std::string& id);
  // Takes in a file of the data folder's file system that check_session() found
  // sound. Its own id where that is free, else a new one; the same session, byte
  // for byte, is taken once.
  struct Taken {
    SessionEntry session;
    bool is_new = true;
  };
  std::expected<Taken, TraceError> take(const std::filesystem::path& file);

  const std::filesystem::path& folder() const { return files_.folder(); }
  SessionTrash& trash() { return trash_; }

  // Those of the data folder, whoever made them.
  struct Own {
    SessionEntryPtr session;
    std::int64_t changed_utc_ns = 0;  // when its file was written last
  };
  std::expected<std::vector<Own>, TraceError> own();

 private:
  // What tells that a file is as it was: of the file and of the WAL beside it.
  struct Stamp {
    std::uint64_t inode = 0, bytes = 0, wal_bytes = 0;
    std::int64_t changed = 0, wal_changed = 0;  // Unix time, ns
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Known {
    Stamp stamp;
    SessionEntryPtr entry;
  };

  static std::optional<Stamp> stamp_of(const std::filesystem::path& path);
  // Null: it is not there any more.
  SessionEntryPtr entry_of(const SessionFile& file, const Stamp& stamp);
  std::expected<SessionFile, TraceError> own_file(const std::string& id) const;
  std::expected<SessionFile, TraceError> ended_file(const std::string& id) const;
  std::string free_id(const std::string& wanted) const;

  const SessionFiles files_;
  SessionTrash trash_;
  const std::string program_;  // which one this is: another may answer otherwise
  std::mutex changing_;        // held while files are renamed and rewritten
  std::mutex scanning_;        // one reads what is not known yet, the others find it known
  std::mutex mutex_;           // of what follows
  std::map<std::filesystem::path, Known> known_;
};

}  // namespace tt
