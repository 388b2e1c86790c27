// The memory that the caches of read sessions hold together, and its limit. When an entry grows
// beyond the limit, the least recently used entries of all caches are removed. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tt {

class CacheEntry {
 public:
  CacheEntry() = default;
  virtual ~CacheEntry() = default;
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

 private:
  friend class CacheRoom;
  std::int64_t bytes_ = 0;  // guarded by the mutex of the room, as is the next member
  std::uint64_t used_ = 0;
};

class CacheRoom {
 public:
  static constexpr std::size_t kDefaultBytes = std::size_t{512} << 20;
  explicit CacheRoom(std::size_t max_bytes = kDefaultBytes) : max_bytes_(max_bytes) {}

  using Key = std::pair<const void*, std::string>;  // the cache, and the session or query in it
  // The entry of `key`, which now is the most recently used one. Made if there is none.
  std::shared_ptr<CacheEntry> entry(const Key& key,
                                    const std::function<std::shared_ptr<CacheEntry>()>& make);
  // The same; null if there is none.
  std::shared_ptr<CacheEntry> find(const Key& key);
  void remove(const Key& key);
  // `entry` holds so many bytes more. Removes others if the room is too small for all; `entry`
  // stays, whatever its size. An entry that is in use is freed when its last user ends.
  void grew(const std::shared_ptr<CacheEntry>& entry, std::int64_t bytes);
  // Removes entries until the rest fits. Returns whether any was removed.
  bool set_limit(std::size_t max_bytes);

  struct Stats {
    std::size_t entries = 0, bytes = 0, max_bytes = 0;
  };
  Stats stats() const;

 private:
  bool fit(const CacheEntry* keep);  // with mutex_ locked
  std::int64_t held() const;

  mutable std::mutex mutex_;
  std::size_t max_bytes_;
  std::map<Key, std::shared_ptr<CacheEntry>> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace tt
