#include "server/sessions/cache_room.h"

#include <algorithm>

namespace tt {

std::shared_ptr<CacheEntry> CacheRoom::entry(
    const Key& key, const std::function<std::shared_ptr<CacheEntry>()>& make) {
  const std::scoped_lock lock(mutex_);
  auto& entry = entries_[key];
  if (!entry) entry = make();
  entry->used_ = ++clock_;
  return entry;
}

std::shared_ptr<CacheEntry> CacheRoom::find(const Key& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  found->second->used_ = ++clock_;
  return found->second;
}

void CacheRoom::remove(const Key& key) {
  const std::scoped_lock lock(mutex_);
  entries_.erase(key);
}

void CacheRoom::grew(const std::shared_ptr<CacheEntry>& entry, std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  entry->bytes_ += bytes;
  fit(entry.get());
}

bool CacheRoom::set_limit(std::size_t max_bytes) {
  const std::scoped_lock lock(mutex_);
  max_bytes_ = max_bytes;
  return fit(nullptr);
}

CacheRoom::Stats CacheRoom::stats() const {
  const std::scoped_lock lock(mutex_);
  return {.entries = entries_.size(),
          .bytes = static_cast<std::size_t>(std::max<std::int64_t>(held(), 0)),
          .max_bytes = max_bytes_};
}

std::int64_t CacheRoom::held() const {
  std::int64_t all = 0;
  for (const auto& [key, entry] : entries_) all += entry->bytes_;
  return all;
}

bool CacheRoom::fit(const CacheEntry* keep) {
  const auto limit = static_cast<std::int64_t>(max_bytes_);
  bool removed = false;
  for (std::int64_t all = held(); all > limit; removed = true) {
    // The entry that stays compares as the newest.
    const auto oldest = std::ranges::min_element(entries_, {}, [&](const auto& each) {
      return each.second.get() == keep ? UINT64_MAX : each.second->used_;
    });
    if (oldest == entries_.end() || oldest->second.get() == keep) break;
    all -= oldest->second->bytes_;
    entries_.erase(oldest);
  }
  return removed;
}

}  // namespace tt
