// Limits how many handlers compute at a time: more would not be faster, and each takes a part of
// the processors from the inference. A handler that waits for another thread gives its slot to
// others:
//
//   const HandlerWait wait;
//   result.wait();
#pragma once

#include <chrono>
#include <cstddef>
#include <semaphore>
#include <utility>

namespace tt {

class HandlerSlots {
 public:
  explicit HandlerSlots(std::size_t max) : free_(static_cast<std::ptrdiff_t>(max)) {}

  // Takes a slot for the calling thread when one is free, or none at the deadline: a request has to
  // be answered in time.
  void take(std::chrono::steady_clock::time_point deadline) {
    if (free_.try_acquire_until(deadline)) held_ = this;
  }
  // Of the calling thread, if it has one.
  static void give_back() {
    if (HandlerSlots* const slots = std::exchange(held_, nullptr)) slots->free_.release();
  }

 private:
  friend class HandlerWait;
  static inline thread_local HandlerSlots* held_ = nullptr;
  std::counting_semaphore<> free_;
};

// While it exists, the handler that the calling thread runs waits.
class HandlerWait {
 public:
  HandlerWait() : slots_(HandlerSlots::held_) { HandlerSlots::give_back(); }
  ~HandlerWait() {
    constexpr std::chrono::seconds kPatience{1};
    if (slots_ != nullptr) slots_->take(std::chrono::steady_clock::now() + kPatience);
  }
  HandlerWait(const HandlerWait&) = delete;
  HandlerWait& operator=(const HandlerWait&) = delete;

 private:
  HandlerSlots* const slots_;
};

}  // namespace tt
