#include "tests/analysis/experts/expert_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>

#include "analysis/experts/expert_pinning.h"
#include "analysis/experts/experts.h"
#include "analysis/experts/turnover.h"
#include "analysis/index/walk_outlines.h"
#include "tests/analysis/tables/order_check.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

using RouterId = std::pair<LayerId, std::uint32_t>;

// A router's selection for one token, as stored in a slot.
struct Chosen {
  RouterId router;
  Phase phase = Phase::Other;
  std::int64_t experts = 0;            // number of experts
  std::int64_t token = -1;             // index in the session; -1: unknown
  std::vector<std::int64_t> ranked{};  // valid numbers only
  std::vector<std::pair<std::int64_t, float>> scores{};
  bool first_is_valid = false;
};

std::int64_t experts_of(const GraphTemplate& graph, std::uint32_t slot, std::uint32_t of_model) {
  std::int64_t most = 0;
  for (const Access& access : accesses_of(graph)) {
    if (access.extent == Extent::Experts && access.slot.v == slot)
      most = std::max(most, graph.tensor(access.tensor).ne[2]);
  }
  most = std::min<std::int64_t>(most, INT32_MAX);
  return most > 0 ? most : of_model;
}

std::vector<Chosen> all_choices(const SessionReader& reader) {
  const std::uint32_t of_model = reader.info()->n_experts;
  std::vector<Chosen> out;
  const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0 || step.slots.empty()) return true;
    const auto graph = *reader.graph(step.graph);
    // Some models also have lists of other rows (minimax-m3): of the output rows is the one with as
    // many entries as the router has tokens.
    const auto output_rows = [&](std::size_t tokens) {
      const std::vector<std::int64_t>* outputs = nullptr;
      for (std::size_t i = graph->slots.size(); i-- > 0;)
        if (graph->slots[i].kind == SlotKind::OutputIds && step.slots[i].ints.size() == tokens)
          outputs = &step.slots[i].ints;
      return outputs;
    };
    std::map<LayerId, std::uint32_t> routers;
    for (std::uint32_t i = 0; i < graph->slots.size(); ++i) {
      const Slot& slot = graph->slots[i];
      if (slot.kind != SlotKind::Experts) continue;
      const RouterId router{slot.layer, routers[slot.layer]++};
      const std::int64_t experts = experts_of(*graph, i, of_model);
      const std::vector<std::int64_t>& ids = step.slots[i].ints;
      const SlotValues* scores = scores_of(*graph, step, SlotId{i});
      const std::size_t k =
          static_cast<std::size_t>(std::max<std::int64_t>(1, graph->tensor(slot.tensor).ne[0]));
      const std::size_t tokens = ids.size() / k;
      const std::vector<std::int64_t>* outputs = output_rows(tokens);
      for (std::size_t from = 0; from < ids.size(); from += k) {
        Chosen chosen{.router = router, .phase = step.phase, .experts = experts};
        const std::size_t at = from / k;
        if (tokens == step.n_tokens) {
          chosen.token = std::int64_t{step.first_token} + static_cast<std::int64_t>(at);
        } else if (outputs != nullptr && at < tokens && (*outputs)[at] >= 0 &&
                   (*outputs)[at] < step.n_tokens) {
          chosen.token = std::int64_t{step.first_token} + (*outputs)[at];
        }
        for (std::size_t rank = 0; rank < k && from + rank < ids.size(); ++rank) {
          const std::int64_t id = ids[from + rank];
          if (id < 0 || id >= experts) continue;
          chosen.ranked.push_back(id);
          if (rank == 0) chosen.first_is_valid = true;
          if (scores != nullptr && from + rank < scores->floats.size() &&
              !std::isnan(scores->floats[from + rank]))
            chosen.scores.emplace_back(id, scores->floats[from + rank]);
        }
        out.push_back(std::move(chosen));
      }
    }
    return true;
  });
  EXPECT_TRUE(walked.has_value());
  return out;
}

std::vector<Chosen> of_router(const std::vector<Chosen>& all, const RouterId& router) {
  std::vector<Chosen> out;
  for (const Chosen& chosen : all)
    if (chosen.router == router) out.push_back(chosen);
  return out;
}

std::set<std::int64_t> set_of(const Chosen& chosen) {
  return {chosen.ranked.begin(), chosen.ranked.end()};
}

void expect_use(const RouterUse& use, const std::vector<Chosen>& choices) {
  std::map<std::int64_t, std::uint64_t> times, first;
  std::map<std::int64_t, double> scores;
  std::uint64_t total = 0, followed = 0, turned = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (const std::int64_t id : choices[i].ranked) ++times[id], ++total;
    if (choices[i].first_is_valid) ++first[choices[i].ranked.front()];
    for (const auto& [id, score] : choices[i].scores) scores[id] += double{score};
    if (i == 0 || choices[i].token < 0 || choices[i].token != choices[i - 1].token + 1 ||
        choices[i - 1].token < 0)
      continue;
    for (const std::int64_t id : set_of(choices[i])) {
      ++followed;
      if (!set_of(choices[i - 1]).contains(id)) ++turned;
    }
  }
  EXPECT_EQ(use.tokens, choices.size());
  EXPECT_EQ(use.choices, total);
  EXPECT_EQ(use.followed, followed);
  EXPECT_EQ(use.turned, turned);
  ASSERT_EQ(use.used.size(), times.size());
  double bits = 0;
  for (const ExpertCount& count : use.used) {
    EXPECT_EQ(count.choices, times[count.expert]);
    EXPECT_EQ(count.first, first[count.expert]);
    EXPECT_NEAR(count.score, scores[count.expert], 1e-6 * std::abs(scores[count.expert]) + 1e-9);
    const double share = static_cast<double>(times[count.expert]) / static_cast<double>(total);
    bits += share * std::log2(1 / share);
  }
  EXPECT_NEAR(use.entropy(), bits, 1e-9);
  if (use.experts > 0 && total > 0) {
    EXPECT_DOUBLE_EQ(use.coverage(), static_cast<double>(times.size()) / use.experts);
  }
  if (use.experts > 512 || total == 0) return;
  double differences = 0;
  for (std::int64_t a = 0; a < use.experts; ++a) {
    for (std::int64_t b = 0; b < use.experts; ++b)
      differences += std::abs(static_cast<double>(times[a]) - static_cast<double>(times[b]));
  }
  const double n = use.experts, mean = static_cast<double>(total) / n;
  EXPECT_NEAR(use.gini(), differences / (2 * n * n * mean), 1e-9);
}

void expect_pairs(const RouterDetail& detail, const std::vector<Chosen>& choices) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> together;
  std::map<std::int64_t, std::uint64_t> times;
  for (const Chosen& chosen : choices) {
    for (const std::int64_t id : chosen.ranked) ++times[id];
    const auto set = set_of(chosen);
    for (const std::int64_t a : set)
      for (const std::int64_t b : set)
        if (a < b) ++together[{a, b}];
  }
  EXPECT_EQ(detail.pairs.size(), together.size());
  std::uint64_t before = UINT64_MAX;
  for (const ExpertPair& pair : detail.pairs) {
    EXPECT_EQ(pair.together, (together[{pair.a, pair.b}]));
    EXPECT_LE(pair.together, before);
    before = pair.together;
    // Lift: share of tokens with both experts, relative to independent experts.
    const double all = static_cast<double>(choices.size());
    const double chance =
        static_cast<double>(times[pair.a]) / all * static_cast<double>(times[pair.b]) / all;
    EXPECT_NEAR(pair.lift, static_cast<double>(pair.together) / all / chance, 1e-9 * pair.lift);
  }
}

void expect_tokens(const SessionReader& reader, const RouterDetail& detail,
                   const std::vector<Chosen>& choices) {
  const auto tokens = reader.tokens(0, UINT32_MAX);
  ASSERT_TRUE(tokens.has_value());
  std::map<std::int32_t, std::uint64_t> times;                       // by token
  std::map<std::int64_t, std::map<std::int32_t, std::uint64_t>> of;  // by expert
  std::uint64_t known = 0;
  for (const Chosen& chosen : choices) {
    if (chosen.token < 0 || chosen.token >= static_cast<std::int64_t>(tokens->size())) continue;
    const std::int32_t id = (*tokens)[static_cast<std::size_t>(chosen.token)].id;
    ++known;
    ++times[id];
    for (const std::int64_t expert : set_of(chosen)) ++of[expert][id];
  }
  ASSERT_EQ(detail.tokens.size(), detail.use.used.size());
  for (std::size_t i = 0; i < detail.tokens.size(); ++i) {
    auto& counts = of[detail.use.used[i].expert];
    std::uint64_t all = 0;
    for (const auto& [id, n] : counts) all += n;
    std::size_t above = 0;
    for (const auto& [id, n] : counts)
      above += times[id] >= kLeastTokenTimes && n * known > times[id] * all;  // without rounding
    std::set<std::int32_t> seen;
    for (const ExpertToken& token : detail.tokens[i]) {
      EXPECT_TRUE(seen.insert(token.id).second);
      EXPECT_EQ(token.choices, counts[token.id]);
      EXPECT_EQ(token.times, times[token.id]);
      EXPECT_GE(token.times, kLeastTokenTimes);
      EXPECT_GT(token.lift, 1);
      EXPECT_LE(token.low, token.lift);
      EXPECT_GE(token.high, token.lift);
      EXPECT_NEAR(
          token.lift,
          static_cast<double>(token.choices * known) / static_cast<double>(token.times * all),
          1e-9 * token.lift);
    }
    // A lift of exactly 1 may be rounded to either side.
    EXPECT_GE(detail.tokens[i].size() + 1, above);
  }
}

void expect_token_experts(const SessionReader& reader, const std::vector<Chosen>& all) {
  const auto page = token_experts(reader, std::nullopt, {.from = 0, .limit = UINT32_MAX});
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_EQ(page->rows.size(), page->total);
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> expected, found;
  for (const Chosen& chosen : all) {
    if (chosen.token < 0 || chosen.token >= static_cast<std::int64_t>(page->total)) continue;
    for (const std::int64_t id : chosen.ranked) ++expected[{chosen.token, id}];
  }
  for (const TokenExperts& row : page->rows)
    for (const TokenExpert& expert : row.experts)
      found[{row.token.index, expert.expert}] = expert.routers;
  EXPECT_EQ(found, expected);
}

struct SliceRead {
  std::uint32_t slice;
  std::uint64_t size;
};

// All reads of expert slices, in order.
std::vector<SliceRead> slice_reads(const SessionReader& reader) {
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> slices;
  std::vector<SliceRead> reads;
  const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = *reader.graph(step.graph);
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      if (access.write || access.expert < 0 || access.range.empty()) return;
      const auto at =
          slices.try_emplace({access.range.file, access.range.offset, access.range.length},
                             static_cast<std::uint32_t>(slices.size()));
      reads.push_back({at.first->second, access.range.length});
    });
    return true;
  });
  EXPECT_TRUE(walked.has_value());
  return reads;
}

// Bytes that a simulated LRU cache saves of the reads from `half` on.
std::uint64_t simulated_lru(const std::vector<SliceRead>& reads, std::size_t half,
                            std::uint64_t capacity) {
  std::deque<SliceRead> recent;  // newest first
  std::uint64_t used = 0, saved = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto at = std::ranges::find(recent, reads[i].slice, &SliceRead::slice);
    if (at != recent.end()) {
      if (i >= half) saved += reads[i].size;
      used -= at->size;
      recent.erase(at);
    }
    recent.push_front(reads[i]);
    used += reads[i].size;
    while (used > capacity) {
      used -= recent.back().size;
      recent.pop_back();
    }
  }
  return saved;
}

void expect_pinning(const SessionReader& reader) {
  const auto reads = slice_reads(reader);
  const auto found = expert_pinning(reader, {});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->reads, reads.size());
  std::uint64_t bytes = 0, tried = 0;
  std::map<std::uint32_t, std::uint64_t> sizes, in_first_half;
  const std::size_t half = reads.size() / 2;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    bytes += reads[i].size;
    if (i >= half) tried += reads[i].size;
    if (i < half) ++in_first_half[reads[i].slice];
    sizes[reads[i].slice] = reads[i].size;
  }
  EXPECT_EQ(found->read.v, bytes);
  EXPECT_EQ(found->tried.v, tried);
  EXPECT_EQ(found->slices, sizes.size());
  EXPECT_EQ(found->curve.size(), reads.empty() ? 0U : 10U);
  // The same reads as a ReadSequence for the simulations.
  ReadSequence sequence;
  std::map<std::uint32_t, std::uint32_t> items;
  for (const auto& [slice, size] : reads) {
    const auto [at, fresh] =
        items.try_emplace(slice, static_cast<std::uint32_t>(sequence.items.size()));
    if (fresh) sequence.items.push_back({.tensor = {}, .file = {.length = size}});
    sequence.reads.push_back(at->second);
  }
  for (const PinPoint& point : found->curve) {
    EXPECT_EQ(point.tried_lru.v, simulated_lru(reads, half, point.capacity.v));
    EXPECT_EQ(point.lru.v, simulated_lru(reads, 0, point.capacity.v));
    EXPECT_EQ(point.pinned, simulated_pin(sequence, point.capacity).bytes);
    EXPECT_EQ(point.best, simulated_belady(sequence, point.capacity).bytes);
    EXPECT_GE(point.best, point.lru);
    EXPECT_GE(point.best, point.pinned);
    // By reads in the first half, descending; ties by first read.
    std::set<std::uint32_t> left, pinned;
    for (const auto& [slice, size] : sizes) left.insert(slice);
    for (std::uint64_t free = point.capacity.v; !left.empty();) {
      std::uint32_t most = *left.begin();
      for (const std::uint32_t slice : left)
        if (in_first_half[slice] > in_first_half[most]) most = slice;
      if (sizes[most] > free) break;
      free -= sizes[most];
      pinned.insert(most);
      left.erase(most);
    }
    std::uint64_t saved = 0;
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (i >= half && pinned.contains(reads[i].slice) && seen.contains(reads[i].slice))
        saved += reads[i].size;
      seen.insert(reads[i].slice);
    }
    EXPECT_EQ(point.tried_pinned.v, saved);
  }
}

// The sums of `generated`, from a walk over outlines.
void expect_turnover(const SessionReader& reader, const std::vector<RouterUse>& generated) {
  Turnover expected;
  for (const RouterUse& use : generated) {
    expected.followed += use.followed;
    expected.turned += use.turned;
  }
  TurnoverTally tally(reader);
  const auto walked = walk_outlines(
      reader, kAllRows, never_cancel,
      [&](const SessionReader::StepRow& row, StepDecoder& step) { return tally.add(row, step); });
  EXPECT_TRUE(walked.has_value());
  EXPECT_EQ(tally.result(), expected);
}

}  // namespace

std::uint64_t expect_experts(const SessionReader& reader) {
  const std::vector<Chosen> all = all_choices(reader);
  std::uint64_t choices = 0;
  for (const Chosen& chosen : all) choices += chosen.ranked.size();

  std::set<RouterId> routers;
  for (const Chosen& chosen : all) routers.insert(chosen.router);
  const auto found = expert_use(reader, std::nullopt);
  EXPECT_TRUE(found.has_value());
  if (!found) return 0;
  EXPECT_EQ(found->size(), routers.size());
  for (const RouterUse& use : *found) {
    const RouterId router{use.layer, use.router};
    SCOPED_TRACE("layer " + std::to_string(use.layer.v));
    const auto own = of_router(all, router);
    expect_use(use, own);
    const auto detail = router_detail(reader, use.layer, use.router, std::nullopt,
                                      {.pairs = SIZE_MAX, .tokens = SIZE_MAX});
    EXPECT_TRUE(detail.has_value());
    if (!detail) continue;
    EXPECT_EQ(detail->use, use);
    expect_pairs(*detail, own);
    expect_tokens(reader, *detail, own);
  }
  for (const Phase phase : {Phase::Prompt, Phase::Generate}) {
    const auto of_phase = expert_use(reader, phase);
    EXPECT_TRUE(of_phase.has_value());
    if (phase == Phase::Generate) expect_turnover(reader, *of_phase);
    for (const RouterUse& use : *of_phase) {
      std::vector<Chosen> own = of_router(all, {use.layer, use.router});
      std::erase_if(own, [&](const Chosen& chosen) { return chosen.phase != phase; });
      expect_use(use, own);
    }
  }
  expect_token_experts(reader, all);
  expect_pinning(reader);
  return choices;
}

}  // namespace tt::test
