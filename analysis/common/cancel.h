// Rate-limited cancellation check for tight loops.
#pragma once

#include <cstdint>

#include "analysis/common/page.h"

namespace tt {

class CancelCheck {
 public:
  // Iterations between two calls of the callback. With iterations of up to a few
  // microseconds, it is called every few tens of milliseconds.
  static constexpr std::uint32_t kInterval = 1U << 14;
  explicit CancelCheck(const ContinueCheck& keep_going) : keep_going_(keep_going) {}
  // Call before each iteration; false if cancelled. Calls the callback at the first
  // iteration and then at every kInterval-th.
  bool may_continue() { return done_++ % kInterval != 0 || keep_going_(); }

 private:
  const ContinueCheck& keep_going_;
  std::uint32_t done_ = 0;
};

}  // namespace tt
