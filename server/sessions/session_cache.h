// Cache of per-session data that requires reading every step: the index for charts
// (analysis/index/session_index.h) and the totals for SQL (analysis/index/session_totals.h).
// An entry is built on first use, extended while the session grows, and removed by the CacheRoom
// that all caches share. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <format>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <utility>

#include "analysis/index/session_index.h"
#include "analysis/index/session_totals.h"
#include "server/sessions/cache_room.h"
#include "server/sessions/thread_heap.h"

namespace tt {

// Kept is constructed from `how...` and empty at first; extend() adds the steps it does not
// contain yet.
template <class Data, auto... args>
class SessionCache {
 public:
  // `room` must outlive the cache.
  explicit SessionCache(CacheRoom& room) : room_(room) {}

 private:
  struct Entry final : CacheEntry {
    std::shared_timed_mutex mutex;  // shared: readers; exclusive: build and extend
    std::optional<Data> data;
    std::string session;                 // identity of the session: id and start time
    std::optional<std::string> tag;      // state of the file; nullopt: still being recorded
    std::optional<std::string> damaged;  // state of the file that cannot be read to its end
  };

 public:
  // Read access to an entry. The entry does not change while a handle exists; other handles
  // may read it, too.
  class Handle {
   public:
    const Data& operator*() const { return *entry_->data; }

   private:
    friend class SessionCache;
    Handle(std::shared_ptr<Entry> entry, std::shared_lock<std::shared_timed_mutex> lock)
        : entry_(std::move(entry)), lock_(std::move(lock)) {}
    std::shared_ptr<Entry> entry_;
    std::shared_lock<std::shared_timed_mutex> lock_;
  };

  // Returns a handle to the entry, which is built or extended as needed. `tag` is the value of
  // SessionStore::tag() when `reader` was opened, or later. If another session has taken this
  // id meanwhile, no data is reused. While another thread builds the entry, the call waits
  // until keep_going() returns false. For a reader that ends at damage the result is not
  // cached, so that each query detects the damage.
  std::expected<Handle, TraceError> get_or_build(const std::string& id,
                                                 const std::optional<std::string>& tag,
                                                 const SessionReader& reader,
                                                 const ContinueCheck& keep_going);

  // Whether get_or_build() has little to do: it built the entry before, and the file is the same or
  // is being recorded.
  bool is_built(const std::string& id, const std::optional<std::string>& tag) const;

 private:
  std::shared_ptr<Entry> entry_of(const std::string& id);
  template <class Lock>
  static std::expected<Lock, TraceError> lock_entry(Entry& entry, const ContinueCheck& keep_going);
  std::expected<Handle, TraceError> build_uncached(const SessionReader& reader,
                                                   const ContinueCheck& keep_going);
  // Data::extend(), for long sessions in at most kMaxBuilders threads at a time.
  Status extend(Data& data, const SessionReader& reader, const ContinueCheck& keep_going);

  static constexpr int kMaxBuilders = 2;
  static constexpr std::uint32_t kFewSteps = 2000;
  CacheRoom& room_;
  std::counting_semaphore<kMaxBuilders> builders_{kMaxBuilders};
};

// The data of a handle, which is held as long as the pointer.
template <class Handle>
auto shared_data(Handle handle) {
  const auto held = std::make_shared<const Handle>(std::move(handle));
  return std::shared_ptr<std::remove_reference_t<decltype(**held)>>(held, &**held);
}

// The index of a session with 100 million accesses takes at most 120 MB.
class IndexCache : public SessionCache<SessionIndex> {
 public:
  explicit IndexCache(CacheRoom& room) : SessionCache(room), undisturbed_(room) {}
  // As SessionCache::get_or_build(). The index does not change while the pointer is held.
  std::expected<std::shared_ptr<const SessionIndex>, TraceError> get_or_build(
      LeaveOut leave_out, const std::string& id, const std::optional<std::string>& tag,
      const SessionReader& reader, const ContinueCheck& keep_going) {
    if (leave_out == LeaveOut::Nothing)
      return get_or_build(id, tag, reader, keep_going).transform(shared_data<Handle>);
    return undisturbed_.get_or_build(id, tag, reader, keep_going)
        .transform(shared_data<decltype(undisturbed_)::Handle>);
  }
  using SessionCache::get_or_build;
  bool is_built(LeaveOut leave_out, const std::string& id,
                const std::optional<std::string>& tag) const {
    return leave_out == LeaveOut::Nothing ? is_built(id, tag) : undisturbed_.is_built(id, tag);
  }
  using SessionCache::is_built;

 private:
  SessionCache<SessionIndex, LeaveOut::Disturbed> undisturbed_;  // most sessions need none
};

// The size of the totals depends on the templates, not on the length of the session: a few MB.
class TotalsCache {
 public:
  explicit TotalsCache(CacheRoom& room) : untimed_(room), timed_(room) {}
  // As SessionCache::get_or_build(). The totals do not change while the pointer is held.
  std::expected<std::shared_ptr<const SessionTotals>, TraceError> get_or_build(
      SessionTotals::Times times, const std::string& id, const std::optional<std::string>& tag,
      const SessionReader& reader, const ContinueCheck& keep_going) {
    if (times == SessionTotals::Times::Skip)
      return untimed_.get_or_build(id, tag, reader, keep_going)
          .transform(shared_data<decltype(untimed_)::Handle>);
    return timed_.get_or_build(id, tag, reader, keep_going)
        .transform(shared_data<decltype(timed_)::Handle>);
  }

 private:
  SessionCache<SessionTotals, SessionTotals::Times::Skip> untimed_;
  SessionCache<SessionTotals, SessionTotals::Times::Sum> timed_;
};

template <class Data, auto... args>
auto SessionCache<Data, args...>::entry_of(const std::string& id) -> std::shared_ptr<Entry> {
  return std::static_pointer_cast<Entry>(
      room_.entry({this, id}, [] { return std::make_shared<Entry>(); }));
}

template <class Data, auto... args>
bool SessionCache<Data, args...>::is_built(const std::string& id,
                                           const std::optional<std::string>& tag) const {
  const auto entry = std::static_pointer_cast<Entry>(room_.find({this, id}));
  if (!entry) return false;
  const std::shared_lock lock(entry->mutex, std::try_to_lock);
  return lock && entry->data && entry->tag == tag;
}

template <class Data, auto... args>
template <class Lock>
std::expected<Lock, TraceError> SessionCache<Data, args...>::lock_entry(
    Entry& entry, const ContinueCheck& keep_going) {
  Lock lock(entry.mutex, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(20)))
    if (!keep_going()) return std::unexpected(cancelled_error());
  return lock;
}

template <class Data, auto... args>
Status SessionCache<Data, args...>::extend(Data& data, const SessionReader& reader,
                                           const ContinueCheck& keep_going) {
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  if (*steps <= kFewSteps) return data.extend(reader, keep_going);
  while (!builders_.try_acquire_for(std::chrono::milliseconds(20)))
    if (!keep_going()) return std::unexpected(cancelled_error());
  struct Release {
    std::counting_semaphore<kMaxBuilders>& builders;
    ~Release() { builders.release(); }
  } const release{builders_};
  return data.extend(reader, keep_going);
}

template <class Data, auto... args>
auto SessionCache<Data, args...>::build_uncached(const SessionReader& reader,
                                                 const ContinueCheck& keep_going)
    -> std::expected<Handle, TraceError> {
  auto entry = std::make_shared<Entry>();
  entry->data.emplace(args...);
  if (auto done = extend(*entry->data, reader, keep_going); !done)
    return std::unexpected(done.error());
  std::shared_lock lock(entry->mutex);
  return Handle(std::move(entry), std::move(lock));
}

template <class Data, auto... args>
auto SessionCache<Data, args...>::get_or_build(const std::string& id,
                                               const std::optional<std::string>& tag,
                                               const SessionReader& reader,
                                               const ContinueCheck& keep_going)
    -> std::expected<Handle, TraceError> {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const std::string session = std::format("{} {}", info->id, info->start_utc_ns);
  const std::shared_ptr<Entry> entry = entry_of(id);
  for (bool extended = false;;) {
    {
      auto shared = lock_entry<std::shared_lock<std::shared_timed_mutex>>(*entry, keep_going);
      if (!shared) return std::unexpected(shared.error());
      if (entry->data && entry->session == session && (tag ? entry->tag == tag : extended))
        return Handle(entry, *std::move(shared));
      if (tag && entry->damaged == tag) {
        shared->unlock();
        return build_uncached(reader, keep_going);
      }
    }
    const auto alone = lock_entry<std::unique_lock<std::shared_timed_mutex>>(*entry, keep_going);
    if (!alone) return std::unexpected(alone.error());
    const bool same = entry->data && entry->session == session;
    if (same && tag && entry->tag == tag) continue;  // another thread was faster
    // What the entry holds is what this thread allocates and does not free here.
    const std::int64_t before = thread_heap_bytes();
    // Data of another file state cannot be reused. A session that is being recorded is only
    // appended to.
    if (!same || entry->tag) entry->data.emplace(args...);
    entry->session = session;
    entry->tag.reset();
    const auto done = extend(*entry->data, reader, keep_going);
    // A partial result must not be extended later from a different session with the same id.
    if (!done && tag) entry->data.reset();
    room_.grew(entry, thread_heap_bytes() - before);
    if (!done) {
      if (tag && done.error().kind == TraceError::Kind::Damaged) entry->damaged = tag;
      return std::unexpected(done.error());
    }
    entry->tag = tag;
    extended = true;
  }
}

}  // namespace tt
