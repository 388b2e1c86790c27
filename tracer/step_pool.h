// The buffers that carry steps from the inference thread to the writer thread,
// allocated up front. With none free a step's times are dropped and counted,
// its tokens kept: the inference thread never waits for a disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tracer/step_buffer.h"

namespace tt {

class StepPool {
 public:
  StepPool(std::size_t buffers, std::size_t max_ops, std::size_t arena_bytes);

  StepBuffer* try_acquire();         // inference thread, between steps; null when none is free
  void release(StepBuffer* buffer);  // any thread: back to the free ones
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  std::size_t capacity() const { return buffers_.size(); }

 private:
  std::vector<std::unique_ptr<StepBuffer>> buffers_;
  std::mutex mutex_;  // held for a push or a pop, never while a graph runs
  std::vector<StepBuffer*> free_;
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace tt
