#include "analysis/weights/reuse.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/common/cancel.h"

namespace tt {

namespace {

// Fenwick tree: point update and prefix sum in O(log n).
class PrefixSums {
 public:
  explicit PrefixSums(std::size_t size) : tree_(size + 1) {}
  void add(std::size_t at, std::uint64_t value) {  // modulo 2^64, so adding ~v + 1 subtracts v
    for (std::size_t i = at + 1; i < tree_.size(); i += i & (~i + 1)) tree_[i] += value;
  }
  std::uint64_t before(std::size_t end) const {
    std::uint64_t sum = 0;
    for (std::size_t i = end; i > 0; i -= i & (~i + 1)) sum += tree_[i];
    return sum;
  }

 private:
  std::vector<std::uint64_t> tree_;
};

// Per read, the index of the next read of the same item; the number of reads if there is none.
std::expected<std::vector<std::uint32_t>, TraceError> next_reads(const ReadSequence& sequence,
                                                                 const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  const auto count = static_cast<std::uint32_t>(sequence.reads.size());
  std::vector<std::uint32_t> next(count), seen(sequence.items.size(), count);
  for (std::uint32_t i = count; i-- > 0;) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    next[i] = std::exchange(seen[sequence.reads[i]], i);
  }
  return next;
}

std::expected<CachePoint, TraceError> belady(const ReadSequence& sequence,
                                             std::span<const std::uint32_t> next, Bytes capacity,
                                             const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  CachePoint point{.capacity = capacity};
  std::set<std::pair<std::uint32_t, std::uint32_t>> held_by_next;  // (next read, item)
  std::vector<std::uint64_t> held(sequence.items.size());
  std::uint64_t free = capacity.v;
  for (std::uint32_t i = 0; i < sequence.reads.size(); ++i) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    const std::uint32_t item = sequence.reads[i];
    const std::uint64_t size = sequence.size(item);
    point.reads += held[item] == size;
    point.bytes.v += held[item];
    if (held[item] > 0) held_by_next.erase({i, item});
    free += std::exchange(held[item], 0);
    if (next[i] == sequence.reads.size()) continue;
    while (free < size && !held_by_next.empty() && held_by_next.rbegin()->first > next[i]) {
      const auto farthest = std::prev(held_by_next.end());
      const std::uint64_t taken = std::min(held[farthest->second], size - free);
      held[farthest->second] -= taken;
      free += taken;
      if (held[farthest->second] == 0) held_by_next.erase(farthest);
    }
    held[item] = std::min(size, free);
    free -= held[item];
    if (held[item] > 0) held_by_next.emplace(next[i], item);
  }
  return point;
}

}  // namespace

std::expected<std::vector<Bytes>, TraceError> reuse_distances(const ReadSequence& sequence,
                                                              const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  constexpr std::size_t kUnread = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> last(sequence.items.size(), kUnread);
  std::vector<Bytes> distances;
  distances.reserve(sequence.reads.size());
  // The size of each item at the index of its last read; 0 elsewhere.
  PrefixSums sizes(sequence.reads.size());
  for (std::size_t i = 0; i < sequence.reads.size(); ++i) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    const std::uint32_t item = sequence.reads[i];
    const std::uint64_t size = sequence.size(item);
    if (last[item] == kUnread) {
      distances.push_back(kNever);
    } else {
      distances.push_back(Bytes{sizes.before(i) - sizes.before(last[item])});
      sizes.add(last[item], ~size + 1);
    }
    sizes.add(i, size);
    last[item] = i;
  }
  return distances;
}

std::expected<ReuseHistogram, TraceError> reuse_histogram(const ReadSequence& sequence,
                                                          std::span<const Bytes> distances,
                                                          const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  ReuseHistogram histogram;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    ReuseHistogram::Bucket* bucket = &histogram.first;
    if (distances[i] != kNever) {
      // 0 only if the sizes in a damaged file overflow.
      const auto at =
          static_cast<std::size_t>(std::bit_width(std::max<std::uint64_t>(distances[i].v, 1)) - 1);
      if (histogram.buckets.size() <= at) histogram.buckets.resize(at + 1);
      bucket = &histogram.buckets[at];
    }
    ++bucket->reads;
    bucket->bytes.v += sequence.size(sequence.reads[i]);
  }
  return histogram;
}

std::expected<std::vector<CachePoint>, TraceError> lru_curve(const ReadSequence& sequence,
                                                             std::span<const Bytes> distances,
                                                             std::span<const Bytes> capacities,
                                                             const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  // First the reads that each capacity saves in addition to the next smaller one, then
  // cumulative sums.
  std::map<Bytes, CachePoint> saved;
  for (const Bytes capacity : capacities) saved[capacity].capacity = capacity;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    const auto enough = saved.lower_bound(distances[i]);
    if (distances[i] == kNever || enough == saved.end()) continue;
    ++enough->second.reads;
    enough->second.bytes.v += sequence.size(sequence.reads[i]);
  }
  CachePoint sum;
  for (auto& [capacity, point] : saved) {
    point.reads = sum.reads += point.reads;
    point.bytes.v = sum.bytes.v += point.bytes.v;
  }
  std::vector<CachePoint> curve;
  for (const Bytes capacity : capacities) curve.push_back(saved[capacity]);
  return curve;
}

std::expected<std::vector<CachePoint>, TraceError> belady_curve(const ReadSequence& sequence,
                                                                std::span<const Bytes> capacities,
                                                                const ContinueCheck& keep_going) {
  const auto next = next_reads(sequence, keep_going);
  if (!next) return std::unexpected(next.error());
  std::vector<CachePoint> curve;
  for (const Bytes capacity : capacities) {
    const auto point = belady(sequence, *next, capacity, keep_going);
    if (!point) return std::unexpected(point.error());
    curve.push_back(*point);
  }
  return curve;
}

std::vector<std::uint32_t> most_read_first(const ReadSequence& sequence) {
  std::vector<std::uint64_t> reads;
  for (const ReuseItem& item : sequence.items) reads.push_back(item.reads);
  return most_read_first(reads);
}

std::vector<std::uint32_t> most_read_first(std::span<const std::uint64_t> reads) {
  std::vector<std::uint32_t> order(reads.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t item) { return reads[item]; });
  return order;
}

std::expected<std::vector<CachePoint>, TraceError> pin_curve(const ReadSequence& sequence,
                                                             std::span<const Bytes> capacities,
                                                             const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  const auto order = most_read_first(sequence);
  std::vector<CachePoint> curve;
  for (const Bytes capacity : capacities) {
    CachePoint point{.capacity = capacity};
    std::uint64_t free = capacity.v;
    for (const std::uint32_t item : order) {
      if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
      const std::uint64_t again = sequence.items[item].reads - 1;
      const std::uint64_t held = std::min(free, sequence.size(item));
      point.bytes.v += again * held;
      if (held == sequence.size(item)) point.reads += again;
      free -= held;
    }
    curve.push_back(point);
  }
  return curve;
}

std::expected<Reuse, TraceError> reuse(const SessionReader& reader, const ReuseQuery& query,
                                       const ContinueCheck& keep_going) {
  const auto sequence = weight_reads(reader, kAllRows, query.grain, keep_going);
  if (!sequence) return std::unexpected(sequence.error());
  return reuse(*sequence, query, keep_going);
}

std::expected<Reuse, TraceError> reuse(const ReadSequence& sequence, const ReuseQuery& query,
                                       const ContinueCheck& keep_going) {
  Reuse found{.grain = query.grain,
              .items = sequence.items.size(),
              .reads = sequence.reads.size(),
              .bytes = sequence.bytes(),
              .distinct = sequence.distinct_bytes(),
              .histogram = {},
              .lru = {},
              .belady = {},
              .pin = {}};
  std::vector<Bytes> capacities = query.capacities;
  for (std::uint64_t i = 1; i <= query.points && query.capacities.empty(); ++i) {
    const std::uint64_t all = found.distinct.v, n = query.points;
    capacities.push_back(Bytes{all / n * i + all % n * i / n});
  }
  const auto distances = reuse_distances(sequence, keep_going);
  if (!distances) return std::unexpected(distances.error());
  auto histogram = reuse_histogram(sequence, *distances, keep_going);
  if (!histogram) return std::unexpected(histogram.error());
  found.histogram = *std::move(histogram);
  auto lru = lru_curve(sequence, *distances, capacities, keep_going);
  if (!lru) return std::unexpected(lru.error());
  found.lru = *std::move(lru);
  auto pin = pin_curve(sequence, capacities, keep_going);
  if (!pin) return std::unexpected(pin.error());
  found.pin = *std::move(pin);
  auto belady = belady_curve(sequence, capacities, keep_going);
  if (!belady) return std::unexpected(belady.error());
  found.belady = *std::move(belady);
  return found;
}

}  // namespace tt
