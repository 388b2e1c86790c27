// Counts connections per peer, so that one peer cannot use all of them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace tt::frontend {

class PeerSlots;

// Counts one connection of a peer while it exists; can be destroyed on any thread.
class PeerSlot {
 public:
  PeerSlot() = default;
  PeerSlot(std::shared_ptr<PeerSlots> slots, std::string peer);
  PeerSlot(PeerSlot&& other) noexcept = default;
  PeerSlot& operator=(PeerSlot&& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(peer_, other.peer_);
    return *this;
  }
  ~PeerSlot();

  const std::string& peer() const { return peer_; }

 private:
  std::shared_ptr<PeerSlots> slots_;
  std::string peer_;
};

class PeerSlots {
 public:
  std::size_t count(const std::string& peer) const {
    const std::scoped_lock lock(mutex_);
    const auto at = counts_.find(peer);
    return at == counts_.end() ? 0 : at->second;
  }

 private:
  friend PeerSlot;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> counts_;  // no zeros; guarded by mutex_
};

inline PeerSlot::PeerSlot(std::shared_ptr<PeerSlots> slots, std::string peer)
    : slots_(std::move(slots)), peer_(std::move(peer)) {
  const std::scoped_lock lock(slots_->mutex_);
  ++slots_->counts_[peer_];
}

inline PeerSlot::~PeerSlot() {
  if (!slots_) return;
  const std::scoped_lock lock(slots_->mutex_);
  const auto at = slots_->counts_.find(peer_);
  if (at != slots_->counts_.end() && --at->second == 0) slots_->counts_.erase(at);
}

}  // namespace tt::frontend
