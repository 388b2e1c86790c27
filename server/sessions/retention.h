// Enforces the limits of the data folder: age, quota and free disk space. Deleted sessions are
// removed first, then the oldest sessions. Never removes a session that is being recorded, a
// file that cannot be read, or a file that is not a session of this server. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <expected>
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
  // Minimum free disk space. Below it no recording, upload or export starts or goes on, except that
  // recordings that run may use it.
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

  // Starts a thread that sweeps immediately and then every `interval`. Once a second it finishes
  // the files of sessions that were read when they ended (SessionStore::finish_files()).
  void start(std::chrono::milliseconds interval = std::chrono::seconds(10));
  void stop();

  // Removes everything that is due.
  void sweep();

  // Call before a session is recorded. Makes room for it and for what the running ones may still
  // write, by removing old sessions to below the quota; returns a problem only when the limit is
  // exceeded and nothing more can be removed.
  std::optional<Problem> check_session_space();
  // Call before a session file of `bytes` is added: removes old sessions as for a new recording.
  void make_room(std::uint64_t bytes);
  // Whether a session file of `bytes` fits into the quota.
  std::optional<Problem> check_file_size(std::uint64_t bytes) const;

  // Disk space that an upload, a snapshot or an export was promised and has not used yet. All
  // claims and the disk reserve are held against each other: what one was promised, no other gets.
  // One thread at a time.
  class Claim {
   public:
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();
    // Call before each block is written. More than what was claimed is claimed now.
    std::optional<Problem> before_write(std::uint64_t bytes);
    // For files whose blocks pass through other hands: call at least once per claimed bytes
    // written. Whether what was claimed is still free after what was written.
    std::optional<Problem> check();

   private:
    friend class Retention;
    explicit Claim(Retention& retention) : retention_(&retention) {}
    Retention* retention_;  // null: moved from
    std::uint64_t left_ = 0, writing_ = 0;
  };
  // Frees space only by purging deleted sessions.
  std::expected<Claim, Problem> claim(std::uint64_t bytes);
  // What an export or a conversion writes at most between two calls of Claim::check().
  static constexpr std::uint64_t kBetweenChecks = 1u << 20;

  DataUsage room() const;
  const RetentionOptions& options() const { return options_; }

 private:
  void purge_due();
  void remove_old();
  // What the running sessions and a new one may still write, by the sessions that ended last.
  std::uint64_t expected_growth() const;
  // If the sessions and `growth` exceed the quota, removes sessions until there is some room again.
  // Returns what they hold if it is more than the quota, and none of them could be removed. Decided
  // by one sum: what grows after it is the concern of the next call.
  std::optional<std::uint64_t> enforce_quota(std::uint64_t growth);
  std::string what_remains() const;
  // Adds `bytes` to the claims if there is room for them.
  bool try_claim(std::uint64_t bytes);
  void release(std::uint64_t bytes);
  // The same; purges deleted sessions if necessary. Requires sweep_mutex_.
  std::optional<Problem> claim_space(std::uint64_t bytes);
  bool purge(const DeletedSession& session, std::string_view reason);
  bool erase(const SessionStore::Own& own, std::string_view reason);
  // Sessions that may be removed, in order of removal.
  std::vector<SessionStore::Own> removable() const;

  SessionStore& sessions_;
  const RetentionOptions options_;
  const OnRemoved on_removed_;
  const UtcClock now_;
  std::mutex sweep_mutex_;
  std::mutex claim_mutex_;  // locked after sweep_mutex_; guards claimed_
  std::uint64_t claimed_ = 0;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace tt
