// For loops over millions of small things, which no step divides: whether the answer is
// still wanted.
#pragma once

#include <cstdint>

#include "analysis/common/page.h"

namespace tt {

class Patience {
 public:
  // Of pieces of work that take up to some microseconds: asked every few tens of
  // milliseconds.
  static constexpr std::uint32_t kPieces = 1U << 14;
  explicit Patience(const KeepGoing& keep_going) : keep_going_(keep_going) {}
  // Called before each piece; asks at the first, and then at every kPieces-th.
  bool lasts() { return done_++ % kPieces != 0 || keep_going_(); }

 private:
  const KeepGoing& keep_going_;
  std::uint32_t done_ = 0;
};

}  // namespace tt
