// Compares reuse analysis with simulated caches.
#include "analysis/weights/reuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>

#include "analysis/common/cancel.h"
#include "analysis/experts/expert_pinning.h"
#include "analysis/weights/read_blocks.h"
#include "tests/analysis/tables/order_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

ReadSequence sequence_of(const std::vector<std::uint64_t>& sizes,
                         std::vector<std::uint32_t> reads) {
  ReadSequence sequence;
  for (const std::uint64_t size : sizes)
    sequence.items.push_back({.tensor = "t", .file = {.file = 0, .offset = 0, .length = size}});
  for (const std::uint32_t item : reads) ++sequence.items[item].reads;
  sequence.reads = std::move(reads);
  return sequence;
}

ReadSequence random_sequence(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> sizes(1 + random() % 12);
  for (auto& size : sizes) size = 1 + random() % 40;
  std::vector<std::uint32_t> reads(random() % 200);
  for (auto& read : reads) {
    // Sometimes a cyclic walk over all items, as in decoding.
    read = static_cast<std::uint32_t>(seed % 3 == 0 ? static_cast<std::size_t>(&read - reads.data())
                                                    : random()) %
           static_cast<std::uint32_t>(sizes.size());
  }
  // Read every item, as in the result of weight_reads().
  for (std::uint32_t i = 0; i < sizes.size(); ++i) reads.push_back(i);
  return sequence_of(sizes, std::move(reads));
}

std::vector<Bytes> twenty_cache_sizes(const ReadSequence& sequence) {
  std::vector<Bytes> sizes;
  for (std::uint64_t i = 0; i < 20; ++i)
    sizes.push_back(Bytes{sequence.distinct_bytes().v * (i + 1) / 19});
  return sizes;
}

TEST(Reuse, LruCurveMatchesSimulation) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const ReadSequence sequence = random_sequence(seed);
    const auto sizes = twenty_cache_sizes(sequence);
    const auto curve = lru_reuse(sequence, sizes).value().curve;
    ASSERT_EQ(curve.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      EXPECT_EQ(curve[i], simulated_lru(sequence, sizes[i])) << sizes[i].v;
  }
}

TEST(Reuse, BeladyAndPinCurvesMatchSimulation) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const ReadSequence sequence = random_sequence(seed);
    const auto sizes = twenty_cache_sizes(sequence);
    const auto best = belady_curve(sequence, sizes).value();
    const auto pinned = pin_curve(sequence, sizes).value();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(best[i], simulated_belady(sequence, sizes[i])) << sizes[i].v;
      EXPECT_EQ(pinned[i], simulated_pin(sequence, sizes[i])) << sizes[i].v;
    }
  }
}

// Steps as of a model: the row of a token, layers whose weights are always read together, one
// weight that every layer reads, and routed experts. Some steps are cancelled, prompts read many
// rows, and two kinds of graphs order the weights differently.
ReadSequence decoded_sequence(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t rows = 1 + below(12), layers = 1 + below(4), per_layer = 1 + below(6);
  const std::uint32_t experts = below(2) * (2 + below(5)), shared = below(2);
  const std::uint32_t first_layer = rows + 1, layer_items = per_layer + 2 * experts;
  std::vector<std::uint64_t> sizes(first_layer + layers * layer_items);
  for (auto& size : sizes) size = 1 + below(seed % 2 == 0 ? 1000 : 8);
  std::vector<std::uint32_t> reads;
  for (std::uint32_t step = 0; step < 12; ++step) {
    const bool prompt = below(5) == 0;
    for (std::uint32_t i = prompt ? 3 : 1; i > 0; --i) reads.push_back(below(rows));
    std::vector<std::uint32_t> weights;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const std::uint32_t from = first_layer + layer * layer_items;
      if (shared > 0) weights.push_back(rows);
      for (std::uint32_t i = 0; i < per_layer; ++i) weights.push_back(from + i);
      std::vector<std::uint32_t> routed;
      for (std::uint32_t e = 0; e < experts; ++e)
        if (below(2) == 0) routed.push_back(e);
      for (const std::uint32_t half : {0U, 1U})
        for (const std::uint32_t e : routed)
          weights.push_back(from + per_layer + half * experts + e);
      if (prompt && seed % 3 == 0 && weights.size() > 1) std::swap(weights.front(), weights.back());
    }
    if (below(6) == 0) weights.resize(below(weights.size() + 1));
    reads.insert(reads.end(), weights.begin(), weights.end());
  }
  // Items are those that are read, in the order of their first reads.
  std::vector<std::uint64_t> known;
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (std::uint32_t& item : reads) {
    const auto [at, fresh] = numbers.try_emplace(item, static_cast<std::uint32_t>(known.size()));
    if (fresh) known.push_back(sizes[item]);
    item = at->second;
  }
  return sequence_of(known, std::move(reads));
}

TEST(Reuse, CurvesOfDecodedTokensMatchSimulation) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    const ReadSequence sequence = decoded_sequence(seed);
    const auto sizes = twenty_cache_sizes(sequence);
    const auto lru = lru_reuse(sequence, sizes).value().curve;
    const auto best = belady_curve(sequence, sizes).value();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(lru[i], simulated_lru(sequence, sizes[i])) << sizes[i].v;
      EXPECT_EQ(best[i], simulated_belady(sequence, sizes[i])) << sizes[i].v;
    }
    expect_distances(sequence);
  }
}

// More than are simulated in one pass, in any order, some twice.
TEST(Reuse, AnyNumberOfCapacities) {
  const ReadSequence sequence = decoded_sequence(2);
  std::mt19937_64 random(1);
  std::vector<Bytes> sizes;
  for (int i = 0; i < 150; ++i) sizes.push_back(Bytes{random() % sequence.distinct_bytes().v});
  sizes.push_back(sizes.front());
  const auto curve = belady_curve(sequence, sizes).value();
  ASSERT_EQ(curve.size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(curve[i], simulated_belady(sequence, sizes[i])) << sizes[i].v;
}

// What a long session of a dense model costs: two blocks per token, whatever the model has.
TEST(Reuse, WeightsThatAreAlwaysReadTogetherAreOneBlock) {
  std::vector<std::uint32_t> reads;
  for (std::uint32_t token = 0; token < 50; ++token) {
    reads.push_back(token % 7);
    for (std::uint32_t weight = 7; weight < 107; ++weight) reads.push_back(weight);
  }
  const ReadSequence sequence = sequence_of(std::vector<std::uint64_t>(107, 10), std::move(reads));
  const ReadBlocks blocks = read_blocks(sequence, never_cancel).value();
  EXPECT_EQ(blocks.blocks.size(), 8U);
  EXPECT_EQ(blocks.blocks[7].size, 1000U);
  std::uint64_t visited = 0;
  ASSERT_TRUE(blocks.for_each(sequence, never_cancel, [&](std::uint32_t) { ++visited; }));
  EXPECT_EQ(visited, 2U * 50);
}

TEST(Reuse, DistancesMatchReference) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    expect_distances(random_sequence(seed));
  }
}

TEST(Reuse, BeladyIsAnUpperBound) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const ReadSequence sequence = random_sequence(seed);
    const auto sizes = twenty_cache_sizes(sequence);
    const auto best = belady_curve(sequence, sizes).value();
    const auto lru = lru_reuse(sequence, sizes).value().curve;
    const auto pinned = pin_curve(sequence, sizes).value();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_GE(best[i].bytes, lru[i].bytes) << sizes[i].v;
      EXPECT_GE(best[i].bytes, pinned[i].bytes) << sizes[i].v;
    }
    // At full capacity only first reads miss, with any policy.
    const Bytes all{sequence.bytes().v - sequence.distinct_bytes().v};
    EXPECT_EQ(best.back().bytes, all);
    EXPECT_EQ(lru.back().bytes, all);
    EXPECT_EQ(pinned.back().bytes, all);
  }
}

// The maximum that any schedule saves with items of one byte. Tries all schedules.
std::uint64_t best_schedule(const std::vector<std::uint32_t>& reads, std::size_t from,
                            std::uint32_t held, std::size_t room,
                            std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t>& known) {
  if (from == reads.size()) return 0;
  const auto found = known.find({from, held});
  if (found != known.end()) return found->second;
  const std::uint32_t bit = 1U << reads[from];
  const std::uint32_t with = held | bit;
  std::uint64_t best = 0;
  // Keep any subset that fits.
  for (std::uint32_t kept = with;; kept = (kept - 1) & with) {
    if (static_cast<std::size_t>(std::popcount(kept)) <= room)
      best = std::max(best, best_schedule(reads, from + 1, kept, room, known));
    if (kept == 0) break;
  }
  best += (held & bit) != 0;
  known[{from, held}] = best;
  return best;
}

TEST(Reuse, BeladyMatchesExhaustiveSearch) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::uint32_t> reads(14);
    for (auto& read : reads) read = static_cast<std::uint32_t>(random() % 5);
    const ReadSequence sequence = sequence_of({1, 1, 1, 1, 1}, reads);
    for (std::size_t room = 0; room <= 5; ++room) {
      std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> known;
      const Bytes capacity{room};
      EXPECT_EQ(belady_curve(sequence, std::span(&capacity, 1))->front().bytes.v,
                best_schedule(reads, 0, 0, room, known))
          << seed << ", capacity " << room;
    }
  }
}

// The maximum that any schedule saves with items of several bytes, which may be cached in part.
// A state is the number of cached bytes of each item. Tries all transitions.
class AllSchedules {
 public:
  AllSchedules(const ReadSequence& sequence, std::uint64_t room) : sequence_(sequence) {
    std::vector<std::uint64_t> state(sequence.items.size());
    for (;;) {
      if (std::accumulate(state.begin(), state.end(), std::uint64_t{0}) <= room)
        states_.push_back(state);
      std::size_t item = 0;
      while (item < state.size() && state[item] == sequence.size(static_cast<std::uint32_t>(item)))
        state[item++] = 0;
      if (item == state.size()) return;
      ++state[item];
    }
  }
  std::uint64_t best() const {
    std::vector<std::uint64_t> saved(states_.size());  // from this read on, by state
    for (const std::uint32_t item : sequence_.reads | std::views::reverse) {
      std::vector<std::uint64_t> before(states_.size());
      for (std::size_t from = 0; from < states_.size(); ++from) {
        for (std::size_t to = 0; to < states_.size(); ++to) {
          if (!follows(from, to, item)) continue;
          before[from] = std::max(before[from], states_[from][item] + saved[to]);
        }
      }
      saved = std::move(before);
    }
    return saved.front();  // the empty cache
  }

 private:
  // Only cached bytes and bytes of the item just read can be kept.
  bool follows(std::size_t from, std::size_t to, std::uint32_t item) const {
    for (std::uint32_t i = 0; i < sequence_.items.size(); ++i)
      if (i != item && states_[to][i] > states_[from][i]) return false;
    return true;
  }
  const ReadSequence& sequence_;
  std::vector<std::vector<std::uint64_t>> states_;
};

TEST(Reuse, BeladyMatchesExhaustiveSearchOfUnequalSizes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> sizes(3 + random() % 2);
    for (auto& size : sizes) size = 1 + random() % (sizes.size() == 3 ? 4 : 2);
    std::vector<std::uint32_t> reads(10);
    for (auto& read : reads) read = static_cast<std::uint32_t>(random() % sizes.size());
    const ReadSequence sequence = sequence_of(sizes, reads);
    const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    for (std::uint64_t room = 0; room <= all; ++room) {
      const Bytes capacity{room};
      EXPECT_EQ(belady_curve(sequence, std::span(&capacity, 1))->front().bytes.v,
                AllSchedules(sequence, room).best())
          << seed << ", capacity " << room;
    }
  }
}

// Sums of sizes can overflow in a damaged file.
TEST(Reuse, OverflowingSizesHaveABucket) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  const ReadSequence sequence = sequence_of({kHalf, kHalf}, {0, 1, 0});
  const ReuseHistogram histogram = lru_reuse(sequence, {}).value().histogram;
  ASSERT_EQ(histogram.buckets.size(), 1U);
  EXPECT_EQ(histogram.buckets[0].reads, 1U);
  EXPECT_EQ(histogram.first.reads, 2U);
}

TEST(Reuse, HistogramCountsEachReadOnce) {
  const ReadSequence sequence = sequence_of({10, 20, 5}, {0, 1, 0, 0, 2, 1});
  const auto distances = reuse_distances(sequence).value();
  EXPECT_EQ(distances,
            (std::vector<Bytes>{kNever, kNever, Bytes{30}, Bytes{10}, kNever, Bytes{20 + 10 + 5}}));
  const ReuseHistogram histogram = lru_reuse(sequence, {}).value().histogram;
  EXPECT_EQ(histogram.first, (ReuseHistogram::Bucket{3, Bytes{35}}));
  ASSERT_EQ(histogram.buckets.size(), 6U);
  EXPECT_EQ(histogram.buckets[3], (ReuseHistogram::Bucket{1, Bytes{10}}));  // 8..15
  EXPECT_EQ(histogram.buckets[4], (ReuseHistogram::Bucket{1, Bytes{10}}));  // 16..31
  EXPECT_EQ(histogram.buckets[5], (ReuseHistogram::Bucket{1, Bytes{20}}));  // 32..63
}

TEST(Reuse, ReadsAreWeightsInOpOrder) {
  const SmallSession session({small_step(0), small_step(1)});
  const auto reader = SessionReader::open(session.path);
  ASSERT_TRUE(reader.has_value());
  const auto tensors = weight_reads(*reader, {.from = 0, .limit = 10}, Grain::Tensor);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  std::vector<std::string> names;
  for (const std::uint32_t item : tensors->reads) names.push_back(tensors->items[item].tensor);
  const std::vector<std::string> step = {"token_embd.weight", "blk.0.attn_norm.weight",
                                         "blk.0.attn_q.weight", "blk.1.ffn_down.weight",
                                         "output.weight"};
  std::vector<std::string> twice = step;
  twice.insert(twice.end(), step.begin(), step.end());
  EXPECT_EQ(names, twice);
  EXPECT_EQ(tensors->distinct_bytes(), Bytes{512 + 32 + 256 + 256 + 512});

  // With Grain::Part, the two embedding rows are two items of 32 bytes.
  const auto parts = weight_reads(*reader, {.from = 1, .limit = 1}, Grain::Part);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->reads.size(), 6U);
  EXPECT_EQ(parts->items[0].file, (FileRange{.file = 0, .offset = 1000 + 3 * 32, .length = 32}));
  EXPECT_EQ(parts->items[1].file, (FileRange{.file = 0, .offset = 1000 + 5 * 32, .length = 32}));
}

TEST(Reuse, SessionResultMatchesItsParts) {
  const SmallSession session({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = session.reader();
  for (const Grain grain : {Grain::Tensor, Grain::Part}) {
    const std::vector<Bytes> capacities = {Bytes{0}, Bytes{600}, Bytes{1567}, Bytes{1568}};
    const auto sequence = weight_reads(reader, {.from = 0, .limit = 10}, grain).value();
    const auto [histogram, lru] = lru_reuse(sequence, capacities).value();
    const auto found = reuse(reader, {.grain = grain, .capacities = capacities}).value();
    EXPECT_EQ(found.lru, lru);
    EXPECT_EQ(found.belady, belady_curve(sequence, capacities));
    EXPECT_EQ(found.pin, pin_curve(sequence, capacities));
    EXPECT_EQ(found.histogram.first, histogram.first);
    EXPECT_EQ(found.reads, sequence.reads.size());
    EXPECT_EQ(reuse(reader, {.grain = grain}).value().lru.back().capacity, found.distinct);
    int checks = 0;  // cancel after the walk over the steps, before the curves
    const auto late = reuse(reader, {.grain = grain}, [&] { return ++checks <= 3; });
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().kind, TraceError::Kind::Cancelled);
  }
}

// Each pass over the reads, and each pass over the items for a curve, checks for cancellation.
TEST(Reuse, ChecksForCancellationRegularly) {
  constexpr std::uint32_t kItems = 20'000, kReads = 150'000;
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> reads(kItems);
  std::iota(reads.begin(), reads.end(), 0U);
  while (reads.size() < kReads) reads.push_back(static_cast<std::uint32_t>(random() % kItems));
  ReadSequence sequence = sequence_of(std::vector<std::uint64_t>(kItems, 3), std::move(reads));
  for (ReuseItem& item : sequence.items) item.expert = 0;
  const std::vector<Bytes> sizes = {Bytes{1500}, Bytes{15'000}, Bytes{45'000}};
  const ReuseQuery query{.capacities = sizes};
  struct Case {
    const char* name;
    std::uint64_t visits;  // number of reads or items visited
    std::function<std::optional<TraceError>(const ContinueCheck&)> ask;
  };
  const auto error_of = [](const auto& answer) {
    return answer ? std::nullopt : std::optional(answer.error());
  };
  const Case cases[] = {
      {"distances", kReads,
       [&](const ContinueCheck& keep_going) {
         return error_of(reuse_distances(sequence, keep_going));
       }},
      {"lru", 2 * kReads,
       [&](const ContinueCheck& keep_going) {
         return error_of(lru_reuse(sequence, sizes, keep_going));
       }},
      {"belady", 2 * kReads,
       [&](const ContinueCheck& keep_going) {
         return error_of(belady_curve(sequence, sizes, keep_going));
       }},
      {"pin", 3 * kItems,
       [&](const ContinueCheck& keep_going) {
         return error_of(pin_curve(sequence, sizes, keep_going));
       }},
      {"all of them", 2 * kReads + 3 * kItems,  // LRU runs beside the others
       [&](const ContinueCheck& keep_going) {
         return error_of(reuse(sequence, query, keep_going));
       }},
      {"of experts", 9 * kReads + 3 * kItems, [&](const ContinueCheck& keep_going) {
         return error_of(expert_pinning(sequence, sizes, keep_going));
       }}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    std::uint64_t checks = 0;
    EXPECT_FALSE(one.ask([&] { return ++checks > 0; }).has_value());
    EXPECT_GE(checks, one.visits / CancelCheck::kInterval);
    EXPECT_LE(CancelCheck::kInterval, 1U << 14);
    // Cancel at the first check, in the middle, and at the last check.
    for (const std::uint64_t last : {std::uint64_t{1}, checks / 2, checks}) {
      std::uint64_t again = 0;
      const auto error = one.ask([&] { return ++again < last; });
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->kind, TraceError::Kind::Cancelled);
      EXPECT_EQ(again, last);
    }
  }
}

TEST(Reuse, SequenceContainsEveryWeightRead) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const auto file = folder / "s.ttrace";
    ASSERT_TRUE(write_session(file, plausible_session(seed)).has_value());
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value());
    EXPECT_GT(expect_reuse(*reader, 20), 100U);
  }
}

// Any file contents.
TEST(Reuse, AcceptsAnySession) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const auto file = folder / "s.ttrace";
    ASSERT_TRUE(write_session(file, random_session(seed)).has_value());
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value());
    // Sums of random sizes overflow, so only the sequence is compared.
    expect_reuse(*reader, 0);
  }
}

}  // namespace
}  // namespace tt::test
