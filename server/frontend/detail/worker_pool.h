// Thread pool with a limit per peer. Tasks run in order, except that tasks of a peer at its
// limit wait while others pass them. A thread is started when a task finds none idle, up to a
// maximum; threads stay until join(). (The pool of cpp-httplib starts no thread when two tasks
// arrive while one thread is idle, so the second could wait for a stream that runs for hours.)
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
#include <utility>
#include <vector>

namespace tt::frontend {

class WorkerPool {
 public:
  using Task = std::move_only_function<void()>;

  // `begin` is called on each thread when it starts. Throws std::system_error if the first thread
  // cannot be created: without one, tasks would wait for ever.
  WorkerPool(std::size_t max_threads, std::size_t max_per_peer, std::function<void()> begin);
  ~WorkerPool() { join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // `peer`: peer_group(). Any thread; a task submitted after join() is dropped.
  void run(std::string peer, Task task);

  // Waits until no task is queued or running. Returns false when `deadline` passes first.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);

  // Runs the queued tasks, then ends all threads. Idempotent.
  void join();

 private:
  struct Ready {
    std::string peer;
    Task task;
  };
  struct Peer {
    std::size_t admitted = 0;  // tasks that are ready or running; at most max_per_peer_
    std::deque<Task> waiting;  // for their peer's limit
  };
  void work();

  const std::size_t max_threads_;
  const std::size_t max_per_peer_;
  const std::function<void()> begin_;
  // Held for a few instructions only: the acceptor, which has normal priority, would wait for
  // a worker that has lost its processor.
  std::mutex mutex_;
  std::condition_variable task_ready_;
  std::condition_variable all_done_;
  std::deque<Ready> ready_;                      // guarded by mutex_, as all below
  std::unordered_map<std::string, Peer> peers_;  // those with an admitted task
  std::vector<std::thread> threads_;             // joined by join() only
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace tt::frontend
