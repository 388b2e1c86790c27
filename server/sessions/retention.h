// How much the data folder may hold, and what goes when it holds too much.
// Sessions that were deleted go first, then the oldest; never one that is being
// recorded, nor a file that is no session of ours or cannot be read. Any thread.
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
  // Since a session's file was written last: it ended, was renamed or imported.
  std::optional<std::chrono::nanoseconds> keep_for;
  // Of all sessions, those included that were deleted and can be brought back:
  // the quota.
  std::optional<std::uint64_t> keep_bytes;
  // Free space that is left on the disk: below that nothing begins.
  std::uint64_t disk_reserve = 256u << 20;
};

struct DataRoom {
  std::uint64_t data_bytes = 0;  // what keep_bytes is held against
  std::uint64_t disk_free = 0;
};

struct RemovedSession {
  std::string id;
  std::uint64_t bytes = 0;
  std::string_view reason;  // for people; lives for ever
};

class Retention {
 public:
  // `removed` is told of each session that goes; from the thread that made it go.
  // `sessions` outlives it.
  using Removed = std::function<void(const RemovedSession&)>;
  Retention(SessionStore& sessions, RetentionOptions options, Removed removed,
            UtcClock now = utc_now_ns);
  ~Retention();  // stop()

  // From now on everything that is due goes, at once and then every `interval`.
  void start(std::chrono::milliseconds interval = std::chrono::seconds(10));
  void stop();

  // Removes what is due now.
  void sweep();

  // Before a session is recorded: makes what room can be made, and says what to
  // do when there is none.
  std::optional<Problem> refuse_session();
  // Before and while a file of `bytes` is written into the data folder, of which
  // `written` are there: an upload, a snapshot. No session has to go for it.
  std::optional<Problem> refuse_file(std::uint64_t bytes, std::uint64_t written);
  // Before `bytes` more are written that are given up again: what a session is made of.
  std::optional<Problem> refuse_scratch(std::uint64_t bytes);

  DataRoom room() const;
  const RetentionOptions& options() const { return options_; }

 private:
  void purge_due();
  void remove_old();
  void keep_under_quota();
  std::optional<Problem> make_disk_room(std::uint64_t bytes);
  bool purge(const DeletedSession& session, std::string_view reason);
  bool erase(const SessionStore::Own& own, std::string_view reason);
  // Sessions that may go, the one that goes first in front.
  std::vector<SessionStore::Own> removable() const;

  SessionStore& sessions_;
  const RetentionOptions options_;
  const Removed removed_;
  const UtcClock now_;
  std::mutex sweeping_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace tt
