// The indexes of the sessions that were asked about last (analysis/session_index.h):
// built at the first question, extended while the session grows, given up when
// together they take too much memory. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "analysis/session_index.h"

namespace tt {

class IndexShelf {
 public:
  explicit IndexShelf(std::size_t most_bytes = std::size_t{512} << 20) : most_bytes_(most_bytes) {}

 private:
  struct Entry {
    std::shared_mutex mutex;  // held by those who ask; alone by who builds or extends
    std::optional<SessionIndex> index;
    std::optional<std::string> tag;  // of the state that the index is of; none: it grows
    std::size_t bytes = 0;           // guarded by the shelf's mutex, as the next
    std::uint64_t used = 0;
  };

 public:
  // Nobody changes the index while this lives; others may read it, too.
  class Lease {
   public:
    const SessionIndex& operator*() const { return *entry_->index; }

   private:
    friend class IndexShelf;
    Lease(std::shared_ptr<Entry> entry, std::shared_lock<std::shared_mutex> lock)
        : entry_(std::move(entry)), lock_(std::move(lock)) {}
    std::shared_ptr<Entry> entry_;
    std::shared_lock<std::shared_mutex> lock_;
  };

  // `tag` is SessionStore::tag() of the session that `reader` reads. The first
  // question waits for the index; whoever asks meanwhile waits with it.
  std::expected<Lease, TraceError> lend(const std::string& id,
                                        const std::optional<std::string>& tag,
                                        const SessionReader& reader, const KeepGoing& keep_going);
  std::size_t bytes() const;

 private:
  std::shared_ptr<Entry> entry_of(const std::string& id);
  void weigh(const std::shared_ptr<Entry>& entry);

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace tt
