#include "tracer/recorder/step_pool.h"

namespace tt {

StepPool::StepPool(std::size_t buffers, std::size_t max_ops, std::size_t arena_bytes) {
  buffers_.reserve(buffers);
  free_.reserve(buffers);
  for (std::size_t i = 0; i < buffers; ++i) {
    buffers_.push_back(std::make_unique<StepBuffer>(max_ops, arena_bytes));
    free_.push_back(buffers_.back().get());
  }
}

StepBuffer* StepPool::try_acquire() {
  StepBuffer* buffer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      buffer = free_.back();
      free_.pop_back();
    }
  }
  if (buffer == nullptr) return nullptr;
  // Tells a live view that still reads the old step that its data is invalid.
  buffer->generation.fetch_add(1, std::memory_order_acq_rel);
  buffer->ops_done.store(0, std::memory_order_release);
  buffer->first_op_ns.store(0, std::memory_order_release);
  {
    const std::lock_guard lock(buffer->new_op_mutex);
    buffer->new_op.reset();
  }
  buffer->header = {};
  buffer->arena_used = 0;
  buffer->captured.clear();
  buffer->stats.clear();
  buffer->values = {};
  buffer->slots_lost = 0;
  buffer->page_faults = 0;
  buffer->count_mismatch = false;
  return buffer;
}

bool StepPool::has_free() {
  const std::lock_guard lock(mutex_);
  return !free_.empty();
}

void StepPool::release(StepBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer);
}

}  // namespace tt
