#include "server/door/detail/attempt_limiter.h"

#include <algorithm>

namespace tt::door {

std::chrono::seconds AttemptLimiter::wait_of(const std::string& peer, Clock::time_point now) {
  const auto known = clean_at_.find(peer);
  const bool shared = known == clean_at_.end() && clean_at_.size() >= kMostPeers;
  if (known == clean_at_.end() && !shared) return {};
  const Clock::time_point clean = shared ? others_clean_at_ : known->second;
  const auto ahead = clean - now;
  const auto max_ahead = kRegain * (kAtOnce - 1);
  return ahead <= max_ahead ? std::chrono::seconds{}
                            : std::chrono::ceil<std::chrono::seconds>(ahead - max_ahead);
}

void AttemptLimiter::count_failure(const std::string& peer, Clock::time_point now) {
  if (clean_at_.size() >= kMostPeers && !clean_at_.contains(peer)) {
    std::erase_if(clean_at_, [&](const auto& entry) { return entry.second <= now; });
  }
  Clock::time_point& clean = clean_at_.size() >= kMostPeers && !clean_at_.contains(peer)
                                 ? others_clean_at_
                                 : clean_at_[peer];
  clean = std::max(clean, now) + kRegain;
}

}  // namespace tt::door
