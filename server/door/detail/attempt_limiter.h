// Limits wrong keys per peer with a token bucket: a burst of kAtOnce, then one per kRegain.
// Bounded: peers beyond kMostPeers share one bucket, so an attacker can neither exhaust memory
// nor evict the count of another peer. Not thread-safe.
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
  static constexpr std::chrono::seconds kRegain{6};  // interval per further attempt
  static constexpr std::size_t kMostPeers = 1024;

  // Returns zero when `peer` may try now, otherwise the remaining wait time.
  std::chrono::seconds wait_of(const std::string& peer, Clock::time_point now);
  void count_failure(const std::string& peer, Clock::time_point now);

  std::size_t peers() const { return clean_at_.size(); }

 private:
  // Time at which the failures of a peer expire. Each failure adds kRegain; no attempt is left
  // when the time is kAtOnce * kRegain ahead.
  std::unordered_map<std::string, Clock::time_point> clean_at_;
  Clock::time_point others_clean_at_;
};

}  // namespace tt::door
