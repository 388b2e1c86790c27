#include "server/door/detail/worker_pool.h"

#include <pthread.h>

#include <system_error>

namespace tt::door {

void WorkerPool::run(Task task) {
  const std::scoped_lock lock(mutex_);
  if (ending_) return;
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): nothing is lost
      // No more threads to be had: the task waits for one of those there are.
    }
  }
  task_ready_.notify_one();
}

void WorkerPool::work() {
  pthread_setname_np(pthread_self(), "door-http");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    task_ready_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before we count as done
    lock.lock();
    --running_;
    if (tasks_.empty() && running_ == 0) all_done_.notify_all();
  }
}

bool WorkerPool::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return all_done_.wait_until(lock, deadline, [this] { return tasks_.empty() && running_ == 0; });
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

}  // namespace tt::door
