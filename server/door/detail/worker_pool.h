// Threads that run tasks in the order given. A thread is started when a task
// finds none idle, up to a maximum; they stay until the end. (cpp-httplib's own
// pool starts none when two tasks come while one thread is idle, so the second
// could wait behind a stream that runs for hours.)
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tt::door {

class WorkerPool {
 public:
  using Task = std::move_only_function<void()>;

  explicit WorkerPool(std::size_t max_threads) : max_threads_(max_threads) {}
  ~WorkerPool() { join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void run(Task task);  // any thread; a task given after join() is dropped

  // Waits until no task is queued or running; false when `deadline` came first.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);

  // Runs what is queued, then ends all threads. Safe to repeat.
  void join();

 private:
  void work();

  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable task_ready_;
  std::condition_variable all_done_;
  std::deque<Task> tasks_;            // guarded by mutex_, as all below
  std::vector<std::thread> threads_;  // joined by join() only
  std::size_t idle_ = 0;
  std::size_t running_ = 0;
  bool ending_ = false;
};

}  // namespace tt::door
