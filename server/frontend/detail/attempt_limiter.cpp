#include "server/frontend/detail/attempt_limiter.h"

#include <algorithm>

namespace tt::frontend {

std::chrono::seconds AttemptLimiter::retry_after(const std::string& peer, Clock::time_point now) {
  const auto known = expires_at_.find(peer);
  const bool shared = known == expires_at_.end() && expires_at_.size() >= kMaxPeers;
  if (known == expires_at_.end() && !shared) return {};
  const Clock::time_point expires = shared ? shared_expires_at_ : known->second;
  const auto ahead = expires - now;
  const auto max_ahead = kRefillInterval * (kBurst - 1);
  return ahead <= max_ahead ? std::chrono::seconds{}
                            : std::chrono::ceil<std::chrono::seconds>(ahead - max_ahead);
}

void AttemptLimiter::count_failure(const std::string& peer, Clock::time_point now) {
  if (expires_at_.size() >= kMaxPeers && !expires_at_.contains(peer)) {
    std::erase_if(expires_at_, [&](const auto& entry) { return entry.second <= now; });
  }
  Clock::time_point& expires = expires_at_.size() >= kMaxPeers && !expires_at_.contains(peer)
                                   ? shared_expires_at_
                                   : expires_at_[peer];
  expires = std::max(expires, now) + kRefillInterval;
}

}  // namespace tt::frontend
