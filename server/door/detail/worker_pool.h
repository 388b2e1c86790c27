// Threads that run peers' tasks, in the order given but for those of a peer that has
// as many running as one may: these wait, and others pass them. A thread is started
// when a task finds none idle, up to a maximum; they stay until the end. (cpp-httplib's
// own pool starts none when two tasks come while one thread is idle, so the second
// could wait behind a stream that runs for hours.)
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tt::door {

class WorkerPool {
 public:
  using Task = std::move_only_function<void()>;

  WorkerPool(std::size_t max_threads, std::size_t max_per_peer)
      : max_threads_(max_threads), max_per_peer_(max_per_peer) {}
  ~WorkerPool() { join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // `peer`: peer_group(). Any thread; a task given after join() is dropped.
  void run(std::string peer, Task task);

  // Waits until no task is queued or running; false when `deadline` came first.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);

  // Runs what is queued, then ends all threads. Safe to repeat.
  void join();

 private:
  struct Waiting {
    std::string peer;
    Task task;
  };
  void work();
  std::deque<Waiting>::iterator next();  // end: none that may run

  const std::size_t max_threads_;
  const std::size_t max_per_peer_;
  std::mutex mutex_;
  std::condition_variable task_ready_;
  std::condition_variable all_done_;
  std::deque<Waiting> tasks_;                             // guarded by mutex_, as all below
  std::unordered_map<std::string, std::size_t> running_;  // by peer; no zeros
  std::vector<std::thread> threads_;                      // joined by join() only
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace tt::door
