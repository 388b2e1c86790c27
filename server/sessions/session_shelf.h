// Cache of per-session data that requires reading every step: the index for charts
// (analysis/index/session_index.h) and the totals for SQL (analysis/index/session_totals.h).
// An entry is built on first use, extended while the session grows, and evicted (least
// recently used) when the total size exceeds the limit. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <format>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "analysis/index/session_index.h"
#include "analysis/index/session_totals.h"

namespace tt {

// Kept is constructed from `how...` and empty at first; extend() adds the steps it does not
// contain yet.
template <class Kept, auto... how>
class SessionShelf {
 public:
  explicit SessionShelf(std::size_t most_bytes) : most_bytes_(most_bytes) {}

 private:
  struct Entry {
    std::shared_timed_mutex mutex;  // shared: readers; exclusive: build and extend
    std::optional<Kept> kept;
    std::string session;                 // identity of the session: id and start time
    std::optional<std::string> tag;      // state of the file; nullopt: still being recorded
    std::optional<std::string> damaged;  // state of the file that cannot be read to its end
    std::size_t bytes = 0;               // guarded by the cache's mutex, as is the next member
    std::uint64_t used = 0;
  };

 public:
  // Read access to an entry. The entry does not change while a handle exists; other handles
  // may read it, too.
  class Lease {
   public:
    const Kept& operator*() const { return *entry_->kept; }

   private:
    friend class SessionShelf;
    Lease(std::shared_ptr<Entry> entry, std::shared_lock<std::shared_timed_mutex> lock)
        : entry_(std::move(entry)), lock_(std::move(lock)) {}
    std::shared_ptr<Entry> entry_;
    std::shared_lock<std::shared_timed_mutex> lock_;
  };

  // Returns a handle to the entry, which is built or extended as needed. `tag` is the value of
  // SessionStore::tag() when `reader` was opened, or later. If another session has taken this
  // id meanwhile, no data is reused. While another thread builds the entry, the call waits
  // until keep_going() returns false. For a reader that ends at damage the result is not
  // cached, so that each query detects the damage.
  std::expected<Lease, TraceError> lend(const std::string& id,
                                        const std::optional<std::string>& tag,
                                        const SessionReader& reader, const KeepGoing& keep_going);
  std::size_t bytes() const;

 private:
  std::shared_ptr<Entry> entry_of(const std::string& id);
  void weigh(const std::shared_ptr<Entry>& entry);
  template <class Lock>
  static std::expected<Lock, TraceError> locked(Entry& entry, const KeepGoing& keep_going);
  static std::expected<Lease, TraceError> lend_unkept(const SessionReader& reader,
                                                      const KeepGoing& keep_going);

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::uint64_t clock_ = 0;
};

// The index of a session with 100 million accesses takes at most 120 MB.
class IndexShelf : public SessionShelf<SessionIndex> {
 public:
  explicit IndexShelf(std::size_t most_bytes = std::size_t{512} << 20) : SessionShelf(most_bytes) {}
};

// The size of the totals depends on the templates, not on the length of the session: a few MB.
class TotalsShelf {
 public:
  // As SessionShelf::lend(). The totals do not change while the pointer is held.
  std::expected<std::shared_ptr<const SessionTotals>, TraceError> lend(
      SessionTotals::Times times, const std::string& id, const std::optional<std::string>& tag,
      const SessionReader& reader, const KeepGoing& keep_going) {
    const auto shared = [](auto lease) {
      const auto held = std::make_shared<const decltype(lease)>(std::move(lease));
      return std::shared_ptr<const SessionTotals>(held, &**held);
    };
    if (times == SessionTotals::Times::Skip)
      return untimed_.lend(id, tag, reader, keep_going).transform(shared);
    return timed_.lend(id, tag, reader, keep_going).transform(shared);
  }
  std::size_t bytes() const { return untimed_.bytes() + timed_.bytes(); }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // for each of the two caches
  SessionShelf<SessionTotals, SessionTotals::Times::Skip> untimed_{kMostBytes};
  SessionShelf<SessionTotals, SessionTotals::Times::Sum> timed_{kMostBytes};
};

template <class Kept, auto... how>
auto SessionShelf<Kept, how...>::entry_of(const std::string& id) -> std::shared_ptr<Entry> {
  const std::scoped_lock lock(mutex_);
  auto& entry = entries_[id];
  if (!entry) entry = std::make_shared<Entry>();
  entry->used = ++clock_;
  return entry;
}

// Evicts old entries. The newest entry stays, whatever its size.
template <class Kept, auto... how>
void SessionShelf<Kept, how...>::weigh(const std::shared_ptr<Entry>& entry) {
  const std::size_t bytes = entry->kept->memory_bytes();
  const std::scoped_lock lock(mutex_);
  entry->bytes = bytes;
  std::size_t all = 0;
  for (const auto& [id, each] : entries_) all += each->bytes;
  while (all > most_bytes_ && entries_.size() > 1) {
    const auto oldest =
        std::ranges::min_element(entries_, {}, [](const auto& each) { return each.second->used; });
    if (oldest->second == entry) break;
    all -= oldest->second->bytes;
    entries_.erase(oldest);
  }
}

template <class Kept, auto... how>
std::size_t SessionShelf<Kept, how...>::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t all = 0;
  for (const auto& [id, entry] : entries_) all += entry->bytes;
  return all;
}

template <class Kept, auto... how>
template <class Lock>
std::expected<Lock, TraceError> SessionShelf<Kept, how...>::locked(Entry& entry,
                                                                   const KeepGoing& keep_going) {
  Lock lock(entry.mutex, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(20)))
    if (!keep_going()) return std::unexpected(cancelled_error());
  return lock;
}

template <class Kept, auto... how>
auto SessionShelf<Kept, how...>::lend_unkept(const SessionReader& reader,
                                             const KeepGoing& keep_going)
    -> std::expected<Lease, TraceError> {
  auto entry = std::make_shared<Entry>();
  entry->kept.emplace(how...);
  if (auto done = entry->kept->extend(reader, keep_going); !done)
    return std::unexpected(done.error());
  std::shared_lock lock(entry->mutex);
  return Lease(std::move(entry), std::move(lock));
}

template <class Kept, auto... how>
auto SessionShelf<Kept, how...>::lend(const std::string& id, const std::optional<std::string>& tag,
                                      const SessionReader& reader, const KeepGoing& keep_going)
    -> std::expected<Lease, TraceError> {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const std::string session = std::format("{} {}", info->id, info->start_utc_ns);
  const std::shared_ptr<Entry> entry = entry_of(id);
  for (bool extended = false;;) {
    {
      auto shared = locked<std::shared_lock<std::shared_timed_mutex>>(*entry, keep_going);
      if (!shared) return std::unexpected(shared.error());
      if (entry->kept && entry->session == session && (tag ? entry->tag == tag : extended))
        return Lease(entry, *std::move(shared));
      if (tag && entry->damaged == tag) {
        shared->unlock();
        return lend_unkept(reader, keep_going);
      }
    }
    const auto alone = locked<std::unique_lock<std::shared_timed_mutex>>(*entry, keep_going);
    if (!alone) return std::unexpected(alone.error());
    const bool same = entry->kept && entry->session == session;
    if (same && tag && entry->tag == tag) continue;  // another thread was faster
    // Data of another file state cannot be reused. A session that is being recorded is only
    // appended to.
    if (!same || entry->tag) entry->kept.emplace(how...);
    entry->session = session;
    entry->tag.reset();
    if (auto done = entry->kept->extend(reader, keep_going); !done) {
      // A partial result must not be extended later from a different session with the same id.
      if (tag) entry->kept.reset();
      if (tag && done.error().kind == TraceError::Kind::Damaged) entry->damaged = tag;
      return std::unexpected(done.error());
    }
    entry->tag = tag;
    extended = true;
    weigh(entry);
  }
}

}  // namespace tt
