#include "tracer/memory/pages/block_reader.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace tt {

BlockReader::BlockReader(std::function<void(const Range&)> read) : read_(std::move(read)) {
  for (std::thread& thread : threads_) thread = std::thread([this] { run(); });
}

BlockReader::~BlockReader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  submitted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BlockReader::submit(const Range& range) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(range);
  }
  submitted_.notify_one();
}

void BlockReader::wait(const Range& range) {
  std::unique_lock lock(mutex_);
  if (std::erase(queue_, range) > 0) {
    lock.unlock();
    read_(range);
    return;
  }
  finished_.wait(lock, [&] { return !std::ranges::contains(reading_, range); });
}

void BlockReader::cancel(const Range& range) {
  std::unique_lock lock(mutex_);
  std::erase(queue_, range);
  finished_.wait(lock, [&] { return !std::ranges::contains(reading_, range); });
}

void BlockReader::run() {
  pthread_setname_np(pthread_self(), "memory read");  // not that of the threads that evaluate
  std::unique_lock lock(mutex_);
  for (;;) {
    submitted_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Range range = queue_.front();
    queue_.pop_front();
    reading_.push_back(range);
    lock.unlock();
    read_(range);
    lock.lock();
    std::erase(reading_, range);
    finished_.notify_all();
  }
}

}  // namespace tt
