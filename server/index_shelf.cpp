#include "server/index_shelf.h"

#include <algorithm>
#include <utility>

namespace tt {

std::shared_ptr<IndexShelf::Entry> IndexShelf::entry_of(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  auto& entry = entries_[id];
  if (!entry) entry = std::make_shared<Entry>();
  entry->used = ++clock_;
  return entry;
}

// The newest stays, whatever its size.
void IndexShelf::weigh(const std::shared_ptr<Entry>& entry) {
  const std::size_t bytes = entry->index->memory_bytes();
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

std::size_t IndexShelf::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t all = 0;
  for (const auto& [id, entry] : entries_) all += entry->bytes;
  return all;
}

std::expected<IndexShelf::Lease, TraceError> IndexShelf::lend(const std::string& id,
                                                              const std::optional<std::string>& tag,
                                                              const SessionReader& reader,
                                                              const KeepGoing& keep_going) {
  const std::shared_ptr<Entry> entry = entry_of(id);
  for (bool extended = false;;) {
    {
      std::shared_lock lock(entry->mutex);
      if (entry->index && (tag ? entry->tag == tag : extended))
        return Lease(entry, std::move(lock));
    }
    const std::unique_lock lock(entry->mutex);
    if (entry->index && tag && entry->tag == tag) continue;  // somebody was faster
    // Of another state of an ended session nothing is known; one that grows only grows.
    if (!entry->index || entry->tag) entry->index.emplace();
    entry->tag.reset();
    if (auto done = entry->index->extend(reader, keep_going); !done) {
      // The half of it would go on with whatever has this id by then.
      if (tag) entry->index.reset();
      return std::unexpected(done.error());
    }
    entry->tag = tag;
    extended = true;
    weigh(entry);
  }
}

}  // namespace tt
