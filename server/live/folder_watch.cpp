#include "server/live/folder_watch.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "server/frontend/background_thread.h"

namespace tt {

namespace {

// The store reads only files that have changed; each look costs a stat of every file.
constexpr std::chrono::milliseconds kInterval{500};

JobState state_of(const SessionRow& row) {
  if (row.running()) return JobState::Running;
  if (row.state == "done") return JobState::Done;
  return row.state == "cancelled" ? JobState::Cancelled : JobState::Failed;
}

JobStatus status_of(const SessionRow& row, JobState state) {
  JobStatus status;
  status.id = row.id;
  status.model = row.model;
  status.state = state;
  status.generated = row.tokens;
  status.steps = row.steps;
  return status;
}

}  // namespace

FolderWatch::FolderWatch(SessionStore& sessions, LiveHub& hub,
                         std::function<bool(const std::string& session)> is_ours)
    : sessions_(sessions), hub_(hub), is_ours_(std::move(is_ours)) {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "folder-watch");
    run_in_background();
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); }))
      if (hub_.connected() > 0 || !running_.empty()) look();
  });
}

void FolderWatch::look() {
  auto rows = sessions_.rows();
  if (!rows) return;  // the next look may succeed
  std::map<std::string, SessionRowPtr> ended = running_;
  for (const SessionRowPtr& row : *rows) {
    const auto known = running_.find(row->id);
    if (known == running_.end() ? !row->running() || is_ours_(row->id) : known->second == row) {
      ended.erase(row->id);
      continue;
    }
    if (known == running_.end()) hub_.on_state(status_of(*row, JobState::Running));
    hub_.on_file_grown(status_of(*row, JobState::Running),
                       {.tokens = row->tokens, .steps = row->steps, .tokens_written = row->tokens});
    if (!row->running()) {
      hub_.on_state(status_of(*row, state_of(*row)));
      running_.erase(row->id);
    } else {
      running_[row->id] = row;
    }
    ended.erase(row->id);
  }
  // Deleted, or renamed at the end (tt record -o NAME): nothing more comes under this name.
  for (const auto& [id, row] : ended) {
    hub_.on_state(status_of(*row, JobState::Done));
    running_.erase(id);
  }
  if (*rows != listed_) hub_.on_list_changed();
  listed_ = *std::move(rows);
}

}  // namespace tt
