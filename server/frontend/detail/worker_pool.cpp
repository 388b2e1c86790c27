#include "server/frontend/detail/worker_pool.h"

#include <system_error>
#include <utility>

namespace tt::frontend {

WorkerPool::WorkerPool(std::size_t max_threads, std::size_t max_per_peer,
                       std::function<void()> begin)
    : max_threads_(max_threads), max_per_peer_(max_per_peer), begin_(std::move(begin)) {
  threads_.emplace_back([this] { work(); });
}

void WorkerPool::run(std::string peer, Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (ending_) return;
    Peer& of_peer = peers_[peer];
    if (of_peer.admitted == max_per_peer_) {
      of_peer.waiting.push_back(std::move(task));  // a worker of this peer will take it
      return;
    }
    ++of_peer.admitted;
    ready_.push_back({.peer = std::move(peer), .task = std::move(task)});
    if (ready_.size() > idle_ && threads_.size() < max_threads_) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): handled below
        // No thread can be created: one of those that exist will run the task.
      }
    }
  }
  task_ready_.notify_one();
}

void WorkerPool::work() {
  begin_();
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    task_ready_.wait(lock, [this] { return !ready_.empty() || (ending_ && peers_.empty()); });
    --idle_;
    if (ready_.empty()) return;
    Ready taken = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    taken.task();
    taken.task = nullptr;  // release its resources before it counts as done
    lock.lock();
    const auto peer = peers_.find(taken.peer);
    if (auto& waiting = peer->second.waiting; !waiting.empty()) {
      ready_.push_back({.peer = std::move(taken.peer), .task = std::move(waiting.front())});
      waiting.pop_front();
    } else if (--peer->second.admitted == 0) {
      peers_.erase(peer);
    }
    if (!peers_.empty()) continue;
    all_done_.notify_all();
    if (ending_) task_ready_.notify_all();
  }
}

bool WorkerPool::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return all_done_.wait_until(lock, deadline, [this] { return peers_.empty(); });
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
