#include "analysis/reuse.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/derived_graphs.h"
#include "analysis/op_facts.h"
#include "tracer/format/access.h"

namespace tt {

namespace {

// Sums over a growing past: add at a place, sum of a stretch, O(log n) both (Fenwick).
class PrefixSums {
 public:
  explicit PrefixSums(std::size_t size) : tree_(size + 1) {}
  void add(std::size_t at, std::uint64_t value) {  // modulo 2^64, so adding ~v + 1 takes v away
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

// The part of a file that an access keeps in a cache.
FileRange cached_range(const GraphTemplate& graph, const StepAccess& access, Grain grain) {
  return grain == Grain::Part ? access.range : graph.tensor(graph.root(access.tensor)).file;
}

class SequenceBuilder {
 public:
  explicit SequenceBuilder(Grain grain) : grain_(grain) {}

  void add_step(const std::shared_ptr<const DerivedGraph>& of, const Step& step) {
    const DerivedGraph& derived = *of;
    const GraphTemplate& graph = *derived.graph;
    if (derived_ != of) {
      derived_ = of;
      accesses_.clear();
      for (const Access& access : derived.accesses) {
        if (may_read_file(graph, access)) accesses_.push_back(access);
      }
      known_.assign(accesses_.size(), kNone);
    }
    OpId op{kNoOp};
    std::vector<std::uint32_t> of_op;
    for_each_access(graph, accesses_, step, [&](const StepAccess& access) {
      if (access.write || access.range.length == 0) return;
      if (access.op.v != op.v) of_op.clear();
      op = access.op;
      // What no list decides is the same item in every step of the template.
      std::uint32_t item = known_[access.access];
      if (item == kNone) item = item_of(graph, access);
      if (accesses_[access.access].slot == kNoSlot) known_[access.access] = item;
      // The experts of one tensor are one read of the tensor.
      if (std::ranges::find(of_op, item) != of_op.end()) return;
      of_op.push_back(item);
      ++sequence_.items[item].reads;
      sequence_.reads.push_back(item);
    });
  }

  ReadSequence take() { return std::move(sequence_); }

 private:
  static constexpr std::uint32_t kNoOp = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t item_of(const GraphTemplate& graph, const StepAccess& access) {
    const FileRange range = cached_range(graph, access, grain_);
    const auto [at, fresh] = items_.try_emplace(std::tuple(range.file, range.offset, range.length),
                                                static_cast<std::uint32_t>(sequence_.items.size()));
    if (fresh) {
      const Tensor& tensor = graph.tensor(graph.root(access.tensor));
      sequence_.items.push_back({.tensor = tensor.name,
                                 .expert = grain_ == Grain::Part ? access.expert : -1,
                                 .file = range,
                                 .layer = tensor.layer});
    }
    return at->second;
  }

  const Grain grain_;
  ReadSequence sequence_;
  std::shared_ptr<const DerivedGraph> derived_;  // of the step before
  std::vector<Access> accesses_;                 // its, that may read weights
  std::vector<std::uint32_t> known_;             // items by them
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> items_;
};

// Per read, the next read of the same item; the number of reads when there is none.
std::vector<std::uint32_t> next_reads(const ReadSequence& sequence) {
  const auto count = static_cast<std::uint32_t>(sequence.reads.size());
  std::vector<std::uint32_t> next(count), seen(sequence.items.size(), count);
  for (std::uint32_t i = count; i-- > 0;) next[i] = std::exchange(seen[sequence.reads[i]], i);
  return next;
}

// Sequences are as long as the walk that read them: asked every so many reads.
constexpr std::size_t kReadsPerAsk = std::size_t{1} << 16;

std::expected<CachePoint, TraceError> belady(const ReadSequence& sequence,
                                             std::span<const std::uint32_t> next, Bytes capacity,
                                             const KeepGoing& keep_going) {
  CachePoint point{.capacity = capacity};
  std::set<std::pair<std::uint32_t, std::uint32_t>> held_by_next;  // (next read, item)
  std::vector<std::uint64_t> held(sequence.items.size());
  std::uint64_t free = capacity.v;
  for (std::uint32_t i = 0; i < sequence.reads.size(); ++i) {
    if (i % kReadsPerAsk == 0 && !keep_going()) return std::unexpected(cancelled_error());
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

Bytes ReadSequence::bytes() const {
  std::uint64_t sum = 0;
  for (const ReuseItem& item : items) sum += item.reads * item.file.length;
  return Bytes{sum};
}

Bytes ReadSequence::distinct_bytes() const {
  std::uint64_t sum = 0;
  for (const ReuseItem& item : items) sum += item.file.length;
  return Bytes{sum};
}

std::expected<ReadSequence, TraceError> weight_reads(const SessionReader& reader, PageRange steps,
                                                     Grain grain, const KeepGoing& keep_going) {
  SequenceBuilder builder(grain);
  DerivedGraphs graphs(reader);
  std::expected<void, TraceError> derived_all;
  const auto walked =
      reader.for_each_step(StepId{static_cast<std::uint32_t>(steps.from)},
                           static_cast<std::uint32_t>(std::min<std::uint64_t>(
                               steps.limit, std::numeric_limits<std::uint32_t>::max())),
                           [&](const Step& step) {
                             if (!keep_going()) {
                               derived_all = std::unexpected(cancelled_error());
                               return false;
                             }
                             const auto derived = graphs.of(step.graph);
                             if (!derived) {
                               derived_all = std::unexpected(derived.error());
                               return false;
                             }
                             if (*derived != nullptr) builder.add_step(*derived, step);
                             return true;
                           });
  if (!walked) return std::unexpected(walked.error());
  if (!derived_all) return std::unexpected(derived_all.error());
  return builder.take();
}

std::vector<Bytes> reuse_distances(const ReadSequence& sequence) {
  return *reuse_distances(sequence, always);
}

std::expected<std::vector<Bytes>, TraceError> reuse_distances(const ReadSequence& sequence,
                                                              const KeepGoing& keep_going) {
  constexpr std::size_t kUnread = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> last(sequence.items.size(), kUnread);
  std::vector<Bytes> distances;
  distances.reserve(sequence.reads.size());
  // At the place of each item's last read stands its size, elsewhere 0.
  PrefixSums sizes(sequence.reads.size());
  for (std::size_t i = 0; i < sequence.reads.size(); ++i) {
    if (i % kReadsPerAsk == 0 && !keep_going()) return std::unexpected(cancelled_error());
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

ReuseHistogram reuse_histogram(const ReadSequence& sequence, std::span<const Bytes> distances) {
  ReuseHistogram histogram;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    ReuseHistogram::Bucket* bucket = &histogram.first;
    if (distances[i] != kNever) {
      // Never 0, but for sizes that a damaged file has and whose sum runs over.
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

std::vector<CachePoint> lru_curve(const ReadSequence& sequence, std::span<const Bytes> distances,
                                  std::span<const Bytes> capacities) {
  // Saved at a capacity is what has a distance up to it: one sum over sorted distances.
  std::map<std::uint64_t, CachePoint> saved;  // by distance
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (distances[i] == kNever) continue;
    CachePoint& point = saved[distances[i].v];
    ++point.reads;
    point.bytes.v += sequence.size(sequence.reads[i]);
  }
  CachePoint sum;
  for (auto& [distance, point] : saved) {
    point.reads = sum.reads += point.reads;
    point.bytes.v = sum.bytes.v += point.bytes.v;
  }
  std::vector<CachePoint> curve;
  for (const Bytes capacity : capacities) {
    const auto above = saved.upper_bound(capacity.v);
    CachePoint point = above == saved.begin() ? CachePoint{} : std::prev(above)->second;
    point.capacity = capacity;
    curve.push_back(point);
  }
  return curve;
}

std::vector<CachePoint> belady_curve(const ReadSequence& sequence,
                                     std::span<const Bytes> capacities) {
  return *belady_curve(sequence, capacities, always);
}

std::expected<std::vector<CachePoint>, TraceError> belady_curve(const ReadSequence& sequence,
                                                                std::span<const Bytes> capacities,
                                                                const KeepGoing& keep_going) {
  const auto next = next_reads(sequence);
  std::vector<CachePoint> curve;
  for (const Bytes capacity : capacities) {
    const auto point = belady(sequence, next, capacity, keep_going);
    if (!point) return std::unexpected(point.error());
    curve.push_back(*point);
  }
  return curve;
}

std::vector<std::uint32_t> most_read_first(const ReadSequence& sequence,
                                           std::span<const std::uint32_t> reads) {
  std::vector<std::uint64_t> times(sequence.items.size());
  for (const std::uint32_t item : reads) ++times[item];
  std::vector<std::uint32_t> order(sequence.items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return times[a] > times[b]; });
  return order;
}

std::vector<CachePoint> pin_curve(const ReadSequence& sequence, std::span<const Bytes> capacities) {
  const auto order = most_read_first(sequence, sequence.reads);
  std::vector<CachePoint> curve;
  for (const Bytes capacity : capacities) {
    CachePoint point{.capacity = capacity};
    std::uint64_t free = capacity.v;
    for (const std::uint32_t item : order) {
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
                                       const KeepGoing& keep_going) {
  constexpr PageRange kAllSteps{.from = 0, .limit = std::numeric_limits<std::uint32_t>::max()};
  const auto sequence = weight_reads(reader, kAllSteps, query.grain, keep_going);
  if (!sequence) return std::unexpected(sequence.error());
  return reuse(*sequence, query, keep_going);
}

std::expected<Reuse, TraceError> reuse(const ReadSequence& sequence, const ReuseQuery& query,
                                       const KeepGoing& keep_going) {
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
  found.histogram = reuse_histogram(sequence, *distances);
  found.lru = lru_curve(sequence, *distances, capacities);
  found.pin = pin_curve(sequence, capacities);
  auto best = belady_curve(sequence, capacities, keep_going);
  if (!best) return std::unexpected(best.error());
  found.belady = *std::move(best);
  return found;
}

}  // namespace tt
