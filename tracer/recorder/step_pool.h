// Pool of the buffers that transfer steps from the inference thread to the writer thread,
// allocated in advance.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tracer/probe/step_buffer.h"

namespace tt {

class StepPool {
 public:
  StepPool(std::size_t buffers, std::size_t max_ops, std::size_t arena_bytes);

  StepBuffer* try_acquire();         // inference thread, between steps; null when none is free
  bool has_free();                   // inference thread: try_acquire() would not return null
  void release(StepBuffer* buffer);  // any thread

 private:
  std::vector<std::unique_ptr<StepBuffer>> buffers_;
  std::mutex mutex_;  // held for a push or a pop, never while a graph runs
  std::vector<StepBuffer*> free_;
};

}  // namespace tt
