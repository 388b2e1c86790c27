// Limits wrong keys per peer with a token bucket: a burst of kBurst, then one per kRefillInterval.
// Bounded: peers beyond kMaxPeers share one bucket, so an attacker can neither exhaust memory
// nor evict the count of another peer. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace tt::frontend {

class AttemptLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 10;
  static constexpr std::chrono::seconds kRefillInterval{6};  // interval per further attempt
  static constexpr std::size_t kMaxPeers = 1024;

  // Returns zero when `peer` may try now, otherwise the remaining wait time.
  std::chrono::seconds retry_after(const std::string& peer, Clock::time_point now);
  void count_failure(const std::string& peer, Clock::time_point now);

  std::size_t peers() const { return expires_at_.size(); }

 private:
  // Time at which the failures of a peer expire. Each failure adds kRefillInterval; no attempt is
  // left when the time is kBurst * kRefillInterval ahead.
  std::unordered_map<std::string, Clock::time_point> expires_at_;
  Clock::time_point shared_expires_at_;
};

}  // namespace tt::frontend
