#include "tests/analysis/tables/order_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <format>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/weights/pattern.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

std::string text_of(const FileRange& range) {
  return std::format("{}:{}+{} ", range.file, range.offset, range.length);
}

// The biases of experts are rows of a weight, as token embeddings are.
bool chosen_by_router(const GraphTemplate& graph, const Access& access) {
  return op_name(graph, graph.op(access.op)) == "ADD_ID" && access.extent == Extent::Rows;
}

// A generate step with the accesses of its template, in order.
struct WalkedStep {
  Step step;
  struct AccessText {
    std::string what;       // op, direction, tensor: from the graph
    std::string touched{};  // bytes and file ranges: from the step
    std::string tensor;     // the owner of the bytes
    std::string viewed;     // the tensor that the op names
    OpId op;
    Cause cause = Cause::KvWindow;  // cause of a different `touched`
    bool fixed = false, weight_read = false;
    bool has_bytes = false;
    std::vector<FileRange> places{};
  };
  std::vector<AccessText> accesses;
};

std::vector<WalkedStep> walk_generate_steps(const SessionReader& reader) {
  std::vector<WalkedStep> out;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.phase != Phase::Generate || step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph).value();
    const auto accesses = accesses_of(*graph);
    WalkedStep walked{.step = step, .accesses = {}};
    std::vector<std::uint64_t> bytes(accesses.size());
    for (const Access& access : accesses) {
      const Tensor& root = graph->tensor(graph->root(access.tensor));
      const std::string viewed = graph->tensor(access.tensor).name;
      walked.accesses.push_back(
          {.what = std::format("{} {} {} {}", access.op.v, access.write,
                               static_cast<int>(access.extent), viewed),
           .tensor = root.name,
           .viewed = viewed,
           .op = access.op,
           .cause =
               access.extent == Extent::Experts || chosen_by_router(*graph, access) ? Cause::Experts
               : access.extent == Extent::Rows && root.kind == TensorKind::Weight   ? Cause::Token
                                                                                  : Cause::KvWindow,
           .fixed = access.extent != Extent::Experts && access.extent != Extent::Rows});
    }
    for_each_access(*graph, accesses, step, [&](const StepAccess& row) {
      WalkedStep::AccessText& one = walked.accesses[row.access];
      bytes[row.access] += row.touched.v;
      if (row.range.length == 0) return;
      one.touched += text_of(row.range);
      one.places.push_back(row.range);
      one.weight_read |= !row.write;
    });
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      walked.accesses[i].touched += std::to_string(bytes[i]);
      walked.accesses[i].has_bytes = bytes[i] > 0;
    }
    out.push_back(std::move(walked));
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return out;
}

void expect_determinism(const SessionReader& reader, const std::vector<WalkedStep>& steps) {
  Determinism expected;
  std::set<Cause> seen;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const WalkedStep &before = steps[i - 1], &now = steps[i];
    std::array<std::uint64_t, kCauses> differing{};
    const auto compared = static_cast<std::uint64_t>(
        std::ranges::count_if(now.accesses, &WalkedStep::AccessText::has_bytes));
    const auto differs = [&](Cause cause, std::uint64_t accesses, std::size_t at) {
      differing[static_cast<std::size_t>(cause)] += accesses;
      if (at >= now.accesses.size() || !seen.insert(cause).second) return;
      expected.firsts.push_back({.step = now.step.id,
                                 .before = before.step.id,
                                 .op = now.accesses[at].op,
                                 .tensor = now.accesses[at].viewed,
                                 .cause = cause});
    };
    const bool same_graph =
        std::ranges::equal(before.accesses, now.accesses, {}, &WalkedStep::AccessText::what,
                           &WalkedStep::AccessText::what);
    if (before.step.aborted || now.step.aborted) {
      differs(Cause::Unfinished, compared, 0);
    } else if (!same_graph) {
      differs(Cause::Graph, compared, 0);
    } else {
      for (std::size_t a = 0; a < now.accesses.size(); ++a)
        if (now.accesses[a].touched != before.accesses[a].touched)
          differs(now.accesses[a].cause, 1, a);
    }
    const auto of = [&](Cause cause) { return differing[static_cast<std::size_t>(cause)]; };
    ++expected.pairs;
    expected.accesses += compared;
    expected.identical += differing == std::array<std::uint64_t, kCauses>{};
    expected.same_weights += of(Cause::Experts) + of(Cause::Graph) + of(Cause::Unfinished) == 0;
    for (std::size_t c = 0; c < kCauses; ++c) expected.differing[c] += differing[c];
  }
  const auto found = determinism(reader);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->pairs, expected.pairs);
  EXPECT_EQ(found->identical, expected.identical);
  EXPECT_EQ(found->same_weights, expected.same_weights);
  EXPECT_EQ(found->accesses, expected.accesses);
  EXPECT_EQ(found->differing, expected.differing);
  ASSERT_EQ(found->firsts.size(), expected.firsts.size());
  for (std::size_t i = 0; i < expected.firsts.size(); ++i) {
    const FirstDifference &a = found->firsts[i], &b = expected.firsts[i];
    EXPECT_EQ(std::tie(a.step, a.before, a.op, a.tensor, a.cause),
              std::tie(b.step, b.before, b.op, b.tensor, b.cause));
  }
}

}  // namespace

double expect_pattern(const SessionReader& reader) {
  std::vector<WalkedStep> steps = walk_generate_steps(reader);
  expect_determinism(reader, steps);
  std::erase_if(steps, [](const WalkedStep& one) { return one.step.aborted; });
  const auto found = access_pattern(reader);
  EXPECT_TRUE(found.has_value());
  if (!found) return 0;

  // The pattern: its entries with the ranges touched last.
  struct Place {
    std::string tensor;
    bool fixed;
    std::vector<FileRange> last;
  };
  std::vector<Place> pattern;
  const std::size_t learned = (steps.size() + 1) / 2;
  if (learned > 0) {
    for (const WalkedStep::AccessText& one : steps[learned - 1].accesses)
      if (one.weight_read) pattern.push_back({one.tensor, one.fixed, one.places});
  }
  EXPECT_EQ(found->entries.size(), pattern.size());
  for (std::size_t i = 0; i < std::min(pattern.size(), found->entries.size()); ++i) {
    EXPECT_EQ(found->entries[i].tensor, pattern[i].tensor);
    EXPECT_EQ(found->entries[i].parts, pattern[i].last.size());
    EXPECT_EQ(found->entries[i].kind == ReadKind::Fixed, pattern[i].fixed);
  }
  std::uint64_t reads = 0, right = 0, bytes = 0;
  for (std::size_t s = learned; s < steps.size(); ++s) {
    std::size_t at = 0;
    for (const WalkedStep::AccessText& one : steps[s].accesses) {
      if (!one.weight_read) continue;
      for (const FileRange& place : one.places) {
        ++reads;
        bytes += place.length;
        right += at < pattern.size() && pattern[at].tensor == one.tensor &&
                 std::ranges::contains(pattern[at].last, place);
      }
      std::size_t next = at;
      while (next < pattern.size() && pattern[next].tensor != one.tensor) ++next;
      if (next == pattern.size()) continue;
      if (!pattern[next].fixed) pattern[next].last = one.places;
      at = next + 1;
    }
  }
  EXPECT_EQ(found->prediction.steps_learned, learned);
  EXPECT_EQ(found->prediction.steps_tried, steps.size() - learned);
  EXPECT_EQ(found->prediction.reads, reads);
  EXPECT_EQ(found->prediction.right, right);
  EXPECT_EQ(found->prediction.bytes.v, bytes);
  return reads == 0 ? 0 : static_cast<double>(right) / static_cast<double>(reads);
}

CachePoint simulated_lru(const ReadSequence& sequence, Bytes capacity) {
  CachePoint point{.capacity = capacity};
  std::deque<std::uint32_t> recent;  // newest first
  std::uint64_t used = 0;
  for (const std::uint32_t item : sequence.reads) {
    const auto at = std::ranges::find(recent, item);
    if (at != recent.end()) {
      ++point.reads;
      point.bytes.v += sequence.size(item);
      recent.erase(at);
    } else {
      used += sequence.size(item);
    }
    recent.push_front(item);
    for (; used > capacity.v; recent.pop_back()) used -= sequence.size(recent.back());
  }
  return point;
}

CachePoint simulated_belady(const ReadSequence& sequence, Bytes capacity) {
  CachePoint point{.capacity = capacity};
  std::vector<std::deque<std::size_t>> later(sequence.items.size());  // future reads of each item
  for (std::size_t i = 0; i < sequence.reads.size(); ++i) later[sequence.reads[i]].push_back(i);
  std::map<std::uint32_t, std::uint64_t> held;  // bytes, by item
  for (const std::uint32_t item : sequence.reads) {
    point.reads += held[item] == sequence.size(item);
    point.bytes.v += held[item];
    later[item].pop_front();
    held[item] = sequence.size(item);
    std::map<std::size_t, std::uint32_t> by_next;
    for (const auto& [one, bytes] : held)
      if (!later[one].empty()) by_next.emplace(later[one].front(), one);
    std::map<std::uint32_t, std::uint64_t> kept;
    std::uint64_t free = capacity.v;
    for (const auto& [next, one] : by_next) {
      const std::uint64_t bytes = std::min(free, held[one]);
      if (bytes > 0) kept[one] = bytes;
      free -= bytes;
    }
    held = std::move(kept);
  }
  return point;
}

CachePoint simulated_pin(const ReadSequence& sequence, Bytes capacity) {
  std::vector<std::uint64_t> times(sequence.items.size());
  for (const std::uint32_t item : sequence.reads) ++times[item];
  std::map<std::uint64_t, std::set<std::uint32_t>> by_times;
  for (std::uint32_t item = 0; item < times.size(); ++item) by_times[times[item]].insert(item);
  std::vector<std::uint64_t> held(times.size());
  std::uint64_t free = capacity.v;
  for (const auto& [reads, items] : by_times | std::views::reverse)
    for (const std::uint32_t item : items) free -= held[item] = std::min(free, sequence.size(item));
  CachePoint point{.capacity = capacity};
  std::set<std::uint32_t> seen;
  for (const std::uint32_t item : sequence.reads) {
    if (seen.insert(item).second) continue;
    point.reads += held[item] == sequence.size(item);
    point.bytes.v += held[item];
  }
  return point;
}

void expect_distances(const ReadSequence& sequence) {
  const auto distances = reuse_distances(sequence).value();
  ASSERT_EQ(distances.size(), sequence.reads.size());
  std::map<std::size_t, ReuseHistogram::Bucket> buckets;
  ReuseHistogram::Bucket first;
  std::deque<std::uint32_t> recent;  // newest first
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < sequence.reads.size(); ++i) {
    const std::uint32_t item = sequence.reads[i];
    Bytes distance = kNever;
    const auto at = std::ranges::find(recent, item);
    if (at != recent.end()) {
      distance = Bytes{0};
      for (auto one = recent.begin(); one <= at; ++one) distance += Bytes{sequence.size(*one)};
      recent.erase(at);
    }
    recent.push_front(item);
    wrong += distances[i] != distance;
    std::size_t bucket = 0;  // [2^bucket, 2^(bucket + 1))
    while (distance != kNever && distance.v >> bucket > 1) ++bucket;
    ReuseHistogram::Bucket& of = distance == kNever ? first : buckets[bucket];
    ++of.reads;
    of.bytes.v += sequence.size(item);
  }
  EXPECT_EQ(wrong, 0U);
  const ReuseHistogram histogram = lru_reuse(sequence, {}).value().histogram;
  EXPECT_EQ(histogram.first, first);
  EXPECT_EQ(histogram.buckets.size(), buckets.empty() ? 0 : buckets.rbegin()->first + 1);
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i)
    EXPECT_EQ(histogram.buckets[i], buckets[i]) << "bucket " << i;
}

std::uint64_t expect_reuse(const SessionReader& reader, std::uint64_t sizes) {
  using Place = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
  std::uint64_t parts = 0;
  for (const Grain grain : {Grain::Tensor, Grain::Part}) {
    std::vector<Place> reads;
    const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
      if (step.graph.v == 0) return true;
      const auto graph = reader.graph(step.graph).value();
      std::set<std::pair<std::uint32_t, Place>> seen;  // in one op
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
        if (access.write || access.range.length == 0) return;
        const FileRange range =
            grain == Grain::Part ? access.range : graph->tensor(graph->root(access.tensor)).file;
        const Place place{range.file, range.offset, range.length};
        if (seen.emplace(access.op.v, place).second) reads.push_back(place);
      });
      return true;
    });
    EXPECT_TRUE(walked.has_value());
    const auto sequence = weight_reads(reader, {.from = 0, .limit = UINT32_MAX}, grain);
    EXPECT_TRUE(sequence.has_value());
    if (!sequence) return 0;
    EXPECT_EQ(sequence->reads.size(), reads.size());
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < std::min(reads.size(), sequence->reads.size()); ++i) {
      const FileRange& file = sequence->items[sequence->reads[i]].file;
      wrong += Place{file.file, file.offset, file.length} != reads[i];
    }
    EXPECT_EQ(wrong, 0U);
    if (grain == Grain::Part) parts = reads.size();

    std::vector<Bytes> capacities;
    for (std::uint64_t i = 1; i <= sizes; ++i)
      capacities.push_back(Bytes{sequence->distinct_bytes().v * i / sizes});
    const auto [histogram, lru] = lru_reuse(*sequence, capacities).value();
    const auto belady = belady_curve(*sequence, capacities).value();
    const auto pinned = pin_curve(*sequence, capacities).value();
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      EXPECT_EQ(lru[i], simulated_lru(*sequence, capacities[i])) << capacities[i].v;
      if (i % 4 == 1) {  // the slowest simulation: check a quarter
        EXPECT_EQ(belady[i], simulated_belady(*sequence, capacities[i])) << capacities[i].v;
      }
      EXPECT_EQ(pinned[i], simulated_pin(*sequence, capacities[i])) << capacities[i].v;
      EXPECT_GE(belady[i].bytes, lru[i].bytes);
      EXPECT_GE(belady[i].bytes, pinned[i].bytes);
    }
    if (sizes == 0) continue;
    expect_distances(*sequence);
    const auto result = reuse(reader, {.grain = grain, .capacities = capacities});
    EXPECT_TRUE(result.has_value());
    if (!result) return 0;
    EXPECT_EQ(result->lru, lru);
    EXPECT_EQ(result->belady, belady);
    EXPECT_EQ(result->pin, pinned);
    EXPECT_EQ(result->histogram.buckets, histogram.buckets);
  }
  return parts;
}

}  // namespace tt::test
