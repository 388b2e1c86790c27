#include "analysis/weights/reuse.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <future>
#include <numeric>
#include <utility>

#include "analysis/common/cancel.h"
#include "analysis/fields/fields.h"
#include "analysis/weights/optimal_caches.h"
#include "analysis/weights/read_blocks.h"
#include "analysis/weights/recency_order.h"

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

// Numbered items in the order of their last reads, with their sizes.
class LruStack {
 public:
  explicit LruStack(std::size_t items) : order_(items), sizes_(order_.places()), size_of_(items) {}

  // Returns the reuse distance of this read.
  Bytes read(std::uint32_t item, std::uint64_t size) {
    order_.make_room([](std::uint32_t, std::uint32_t) {},
                     [&](std::uint32_t used) {
                       sizes_ = PrefixSums(order_.places());
                       for (std::uint32_t at = 0; at < used; ++at)
                         sizes_.add(at, size_of_[order_.item_at(at)]);
                     });
    Bytes distance = kNever;
    if (const std::uint32_t place = order_.place_of(item); place != kNone) {
      distance = Bytes{total_ - sizes_.before(place)};
      sizes_.add(place, ~size + 1);
    } else {
      total_ += size;
      size_of_[item] = size;
    }
    sizes_.add(order_.move_to_end(item), size);
    return distance;
  }

 private:
  RecencyOrder order_;
  PrefixSums sizes_;                    // of the items, at their places
  std::vector<std::uint64_t> size_of_;  // per item that was read
  std::uint64_t total_ = 0;
};

// Ascending and distinct.
std::vector<Bytes> ascending(std::span<const Bytes> capacities) {
  std::vector<Bytes> out(capacities.begin(), capacities.end());
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

// The points of `sorted` at these capacities.
std::vector<CachePoint> points_at(std::span<const Bytes> capacities,
                                  const std::vector<CachePoint>& sorted) {
  std::vector<CachePoint> out;
  for (const Bytes capacity : capacities)
    out.push_back(*std::ranges::lower_bound(sorted, capacity, {}, &CachePoint::capacity));
  return out;
}

std::expected<LruReuse, TraceError> lru_reuse(const ReadSequence& sequence,
                                              const ReadBlocks& blocks,
                                              std::span<const Bytes> capacities,
                                              const ContinueCheck& keep_going) {
  LruReuse out;
  // The last bucket: first reads.
  std::array<ReuseHistogram::Bucket, 65> buckets{};
  // The reads that each capacity saves in addition to the next smaller one; the last: none saves.
  const std::vector<Bytes> sorted = ascending(capacities);
  std::vector<CachePoint> points(sorted.size() + 1);
  LruStack stack(blocks.blocks.size());
  const auto read = blocks.for_each(sequence, keep_going, [&](std::uint32_t number) {
    const ReadBlock& block = blocks.blocks[number];
    const Bytes distance = stack.read(number, block.size);
    // The distance is 0 only if the sizes in a damaged file overflow.
    const int width = std::bit_width(std::max<std::uint64_t>(distance.v, 1));
    auto& bucket = buckets[distance == kNever ? 64 : static_cast<std::size_t>(width - 1)];
    auto& point = points[distance == kNever
                             ? sorted.size()
                             : static_cast<std::size_t>(std::ranges::lower_bound(sorted, distance) -
                                                        sorted.begin())];
    bucket.reads += block.items;
    bucket.bytes.v += block.size;
    point.reads += block.items;
    point.bytes.v += block.size;
  });
  if (!read) return std::unexpected(read.error());
  out.histogram.first = buckets.back();
  std::size_t used = 64;
  while (used > 0 && buckets[used - 1].reads == 0) --used;
  out.histogram.buckets.assign(buckets.begin(),
                               buckets.begin() + static_cast<std::ptrdiff_t>(used));
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    points[i].capacity = sorted[i];
    if (i == 0) continue;
    points[i].reads += points[i - 1].reads;
    points[i].bytes += points[i - 1].bytes;
  }
  points.pop_back();
  out.curve = points_at(capacities, points);
  return out;
}

// `capacities` are ascending.
std::expected<std::vector<CachePoint>, TraceError> optimal_caches(const ReadSequence& sequence,
                                                                  const ReadBlocks& blocks,
                                                                  std::span<const Bytes> capacities,
                                                                  const ContinueCheck& keep_going) {
  std::vector<CachePoint> points;
  while (points.size() < capacities.size()) {
    const auto some = capacities.subspan(points.size())
                          .first(std::min(capacities.size() - points.size(), OptimalCaches::kMax));
    OptimalCaches caches(blocks, some);
    const auto read =
        blocks.for_each(sequence, keep_going, [&](std::uint32_t block) { caches.read(block); });
    if (!read) return std::unexpected(read.error());
    const auto saved = caches.saved();
    for (std::size_t i = 0; i < some.size(); ++i)
      points.push_back(
          {.capacity = some[i], .reads = saved[i].reads, .bytes = Bytes{saved[i].bytes}});
  }
  return points;
}

std::expected<std::vector<CachePoint>, TraceError> belady_curve(const ReadSequence& sequence,
                                                                const ReadBlocks& blocks,
                                                                std::span<const Bytes> capacities,
                                                                const ContinueCheck& keep_going) {
  // The time is that of the capacities, which do not depend on each other: every other one has a
  // thread of its own.
  std::array<std::vector<Bytes>, 2> parts;
  const std::vector<Bytes> sorted = ascending(capacities);
  for (std::size_t i = 0; i < sorted.size(); ++i) parts[i % 2].push_back(sorted[i]);
  std::atomic<bool> stopped = false;
  auto beside = std::async(
      [&] { return optimal_caches(sequence, blocks, parts[1], [&] { return !stopped; }); });
  auto points = optimal_caches(sequence, blocks, parts[0], keep_going);
  stopped = !points;
  const auto others = beside.get();
  if (!points) return std::unexpected(points.error());
  if (!others) return std::unexpected(others.error());
  points->append_range(*others);
  std::ranges::sort(*points, {}, &CachePoint::capacity);
  return points_at(capacities, *points);
}

}  // namespace

std::expected<std::vector<Bytes>, TraceError> reuse_distances(const ReadSequence& sequence,
                                                              const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  std::vector<Bytes> distances;
  distances.reserve(sequence.reads.size());
  LruStack stack(sequence.items.size());
  for (const std::uint32_t item : sequence.reads) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    distances.push_back(stack.read(item, sequence.size(item)));
  }
  return distances;
}

std::expected<LruReuse, TraceError> lru_reuse(const ReadSequence& sequence,
                                              std::span<const Bytes> capacities,
                                              const ContinueCheck& keep_going) {
  const auto blocks = read_blocks(sequence, keep_going);
  if (!blocks) return std::unexpected(blocks.error());
  return lru_reuse(sequence, *blocks, capacities, keep_going);
}

std::expected<std::vector<CachePoint>, TraceError> belady_curve(const ReadSequence& sequence,
                                                                std::span<const Bytes> capacities,
                                                                const ContinueCheck& keep_going) {
  const auto blocks = read_blocks(sequence, keep_going);
  if (!blocks) return std::unexpected(blocks.error());
  return belady_curve(sequence, *blocks, capacities, keep_going);
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
  const auto blocks = read_blocks(sequence, keep_going);
  if (!blocks) return std::unexpected(blocks.error());
  // Both simulations take about as long. LRU has a thread of its own, which ends with the other
  // one.
  std::atomic<bool> stopped = false;
  auto beside = std::async(
      [&] { return lru_reuse(sequence, *blocks, capacities, [&] { return !stopped; }); });
  auto pin = pin_curve(sequence, capacities, keep_going);
  auto belady =
      pin ? belady_curve(sequence, *blocks, capacities, keep_going) : std::unexpected(pin.error());
  stopped = !belady;
  auto lru = beside.get();
  if (!belady) return std::unexpected(belady.error());
  if (!lru) return std::unexpected(lru.error());
  found.histogram = std::move(lru->histogram);
  found.lru = std::move(lru->curve);
  found.pin = *std::move(pin);
  found.belady = *std::move(belady);
  return found;
}

Fields<ReuseHistogram::Bucket> fields_of(const ReuseHistogram::Bucket*) {
  return Fields<ReuseHistogram::Bucket>("ReadCount")
      .add("reads", "", &ReuseHistogram::Bucket::reads)
      .add("bytes", "", &ReuseHistogram::Bucket::bytes);
}

Fields<CachePoint> fields_of(const CachePoint*) {
  return Fields<CachePoint>("SavedReads")
      .add("reads_saved", "reads served completely from the cache", &CachePoint::reads)
      .add("bytes_saved", "bytes served from the cache, including those of partially served reads",
           &CachePoint::bytes);
}

namespace {

struct DistanceRow {
  Bytes from{}, to{};
  ReuseHistogram::Bucket bucket;
};

Fields<DistanceRow> fields_of(const DistanceRow*) {
  return Fields<DistanceRow>()
      .add("from_bytes", "", &DistanceRow::from)
      .add("to_bytes", "", &DistanceRow::to)
      .include(&DistanceRow::bucket);
}

std::vector<DistanceRow> distance_rows(const Reuse& reuse) {
  std::vector<DistanceRow> rows;
  for (std::size_t i = 0; i < reuse.histogram.buckets.size(); ++i) {
    const ReuseHistogram::Bucket& bucket = reuse.histogram.buckets[i];
    if (bucket.reads == 0) continue;
    rows.push_back({.from = Bytes{std::uint64_t{1} << i},
                    .to = Bytes{(std::uint64_t{2} << i) - 1},
                    .bucket = bucket});
  }
  return rows;
}

struct CurveRow {
  CachePoint lru, belady, pin;
};

Fields<CurveRow> fields_of(const CurveRow*) {
  return Fields<CurveRow>()
      .add("capacity_bytes", "", [](const CurveRow& row) { return row.lru.capacity; })
      .add("lru", "", &CurveRow::lru)
      .add("belady", "optimal policy with knowledge of future reads; upper limit for any cache",
           &CurveRow::belady)
      .add("pin", "the most read items stay in the cache", &CurveRow::pin);
}

std::vector<CurveRow> curve_rows(const Reuse& reuse) {
  std::vector<CurveRow> rows;
  for (std::size_t i = 0; i < reuse.lru.size(); ++i)
    rows.push_back({.lru = reuse.lru[i], .belady = reuse.belady[i], .pin = reuse.pin[i]});
  return rows;
}

}  // namespace

Fields<Reuse> fields_of(const Reuse*) {
  return Fields<Reuse>("Reuse")
      .add("grain", "unit of the cache", &Reuse::grain)
      .add("items", "number of distinct items read", &Reuse::items)
      .add("reads", "", &Reuse::reads)
      .add("bytes_read", "", &Reuse::bytes)
      .add("distinct_bytes",
           "total size of the distinct items. A cache of this size serves every read except "
           "the first read of each item",
           &Reuse::distinct)
      .add("first", "first reads, which no cache can save",
           [](const Reuse& reuse) { return reuse.histogram.first; })
      .add("distances",
           "histogram of reuse distances. The reuse distance of a read is the total size of "
           "the distinct items read since the previous read of the same item, including the "
           "item itself",
           distance_rows)
      .add("curve", "what caches of these sizes save", curve_rows);
}

}  // namespace tt
