#include "server/frontend/detail/worker_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace tt::frontend {

void WorkerPool::run(std::string peer, Task task) {
  const std::scoped_lock lock(mutex_);
  if (ending_) return;
  tasks_.push_back({std::move(peer), std::move(task)});
  if (tasks_.size() > idle_ && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): handled below
      // No thread can be created: an existing one will run the task.
    }
  }
  task_ready_.notify_one();
}

std::deque<WorkerPool::Waiting>::iterator WorkerPool::next() {
  return std::ranges::find_if(tasks_, [this](const Waiting& waiting) {
    const auto of_peer = running_.find(waiting.peer);
    return of_peer == running_.end() || of_peer->second < max_per_peer_;
  });
}

// A worker that ends a task looks for the next one itself, so a task that waits for its peer's
// limit needs no wake-up: while a thread is idle, all queued tasks wait for such a limit.
void WorkerPool::work() {
  begin_();
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    task_ready_.wait(lock,
                     [this] { return next() != tasks_.end() || (ending_ && tasks_.empty()); });
    --idle_;
    const auto at = next();
    if (at == tasks_.end()) return;
    Waiting taken = std::move(*at);
    tasks_.erase(at);
    ++running_[taken.peer];
    lock.unlock();
    taken.task();
    taken.task = nullptr;  // release its resources before it counts as done
    lock.lock();
    if (--running_.at(taken.peer) == 0) running_.erase(taken.peer);
    if (tasks_.empty() && running_.empty()) all_done_.notify_all();
    if (tasks_.empty() && ending_) task_ready_.notify_all();
  }
}

bool WorkerPool::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return all_done_.wait_until(lock, deadline,
                              [this] { return tasks_.empty() && running_.empty(); });
}

void WorkerPool::join() {
  std::vector<std::thread> threads;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    threads.swap(threads_);
  }
  task_ready_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tt::frontend
