// Enforces the limits of the data folder: age, quota and free disk space. Deleted sessions are
// removed first, then the oldest sessions. Never removes a session that is being recorded, a
// file that cannot be read, or a file that is not a session of this server. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/json/problem.h"
#include "server/sessions/session_store.h"

namespace tt {

struct RetentionOptions {
  // Maximum age of a session, counted from the last write to its file (end, rename or import).
  std::optional<std::chrono::nanoseconds> max_age;
  // Quota: maximum total size of all sessions, including deleted ones that can be restored.
  std::optional<std::uint64_t> keep_bytes;
  // Minimum free disk space. Below it no recording starts.
  std::uint64_t disk_reserve = 256u << 20;
};

struct DataUsage {
  std::uint64_t data_bytes = 0;  // compared with keep_bytes
  std::uint64_t disk_free = 0;
};

struct RemovedSession {
  std::string id;
  std::uint64_t bytes = 0;
  std::string_view reason;  // for the log; static lifetime
};

class Retention {
 public:
  // `removed` is called for each removed session, on the thread that removed it. `sessions`
  // must outlive this object.
  using OnRemoved = std::function<void(const RemovedSession&)>;
  Retention(SessionStore& sessions, RetentionOptions options, OnRemoved removed,
            UtcClock now = utc_now_ns);
  ~Retention();  // stop()

  // Starts a thread that sweeps immediately and then every `interval`.
  void start(std::chrono::milliseconds interval = std::chrono::seconds(10));
  void stop();

  // Removes everything that is due.
  void sweep();

  // Call before a session is recorded. Removes old sessions as needed; returns a problem when
  // there is still not enough space.
  std::optional<Problem> check_session_space();
  // Call before and while a file of `bytes` is written to the data folder (upload, snapshot);
  // `written` bytes of it already exist. Frees space only by purging deleted sessions.
  std::optional<Problem> check_file_space(std::uint64_t bytes, std::uint64_t written);
  // Call before `bytes` of temporary data are written, such as the source of an import.
  std::optional<Problem> check_scratch_space(std::uint64_t bytes);

  DataUsage room() const;
  const RetentionOptions& options() const { return options_; }

 private:
  void purge_due();
  void remove_old();
  void enforce_quota();
  std::optional<Problem> free_disk_space(std::uint64_t bytes);
  bool purge(const DeletedSession& session, std::string_view reason);
  bool erase(const SessionStore::Own& own, std::string_view reason);
  // Sessions that may be removed, in order of removal.
  std::vector<SessionStore::Own> removable() const;

  SessionStore& sessions_;
  const RetentionOptions options_;
  const OnRemoved on_removed_;
  const UtcClock now_;
  std::mutex sweep_mutex_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace tt
