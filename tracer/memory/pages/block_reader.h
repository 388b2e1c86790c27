// Reads ranges with several threads. Each waits for its read, so that as many reads are in flight
// as there are threads.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tt {

class BlockReader {
 public:
  // Enough to keep a virtual disk and an NVMe drive busy with reads of 2 MiB.
  static constexpr std::size_t kThreads = 4;

  // `read` is called by any of the threads, for a range of addresses.
  struct Range {
    std::uint64_t address = 0, length = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  explicit BlockReader(std::function<void(const Range&)> read);
  ~BlockReader();  // what is not yet being read is forgotten
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // All functions: any thread. The ranges of one address have the same length.
  void submit(const Range& range);
  // Returns when the range is read, or was not submitted. If no thread has begun to read it, the
  // caller does.
  void wait(const Range& range);
  // The range is not read any more when it returns.
  void cancel(const Range& range);

 private:
  void run();

  const std::function<void(const Range&)> read_;
  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  // Guarded by mutex_.
  bool stopping_ = false;
  std::deque<Range> queue_;
  std::vector<Range> reading_;

  std::array<std::thread, kThreads> threads_;
};

}  // namespace tt
