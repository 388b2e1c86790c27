// How often a peer may be wrong about the key: a few times at once, then now
// and then. Bounded: peers beyond the most that are remembered share one
// allowance, so that neither memory nor somebody else's count can be pushed out.
// One thread, or its owner's lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace tt::door {

class AttemptLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kAtOnce = 10;
  static constexpr std::chrono::seconds kRegain{6};  // until one more is allowed
  static constexpr std::size_t kMostPeers = 1024;

  // Zero when `peer` may try now, else how long it has to wait.
  std::chrono::seconds wait_of(const std::string& peer, Clock::time_point now);
  void count_failure(const std::string& peer, Clock::time_point now);

  std::size_t peers() const { return clean_at_.size(); }

 private:
  // The moment at which a peer's failures are all forgiven. Each failure puts
  // it kRegain later; there are none left when it is kAtOnce of them ahead.
  std::unordered_map<std::string, Clock::time_point> clean_at_;
  Clock::time_point others_clean_at_;
};

}  // namespace tt::door
