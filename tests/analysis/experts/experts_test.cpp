// Expert use of small and random sessions. tests/tracer/ has the tests with real models.
#include "analysis/experts/experts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/experts/expert_pinning.h"
#include "tests/analysis/experts/expert_check.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

constexpr std::int64_t kExperts = 8, kUsed = 2;

// Layers with one router each, except two in the last layer. Each router has an expert weight
// with slices of 32 bytes.
GraphTemplate routed_graph(std::uint32_t layers, std::int64_t tokens) {
  GraphMaker m;
  const TensorId x = m.input("inp", {2, 1, tokens}, kF32);
  const auto outputs = m.input("inp_out_ids", {tokens});
  m.slot(SlotKind::OutputIds, outputs);
  for (std::uint32_t i = 0; i <= layers; ++i) {
    const std::string layer = std::to_string(std::min(i, layers - 1));
    const LayerId id{static_cast<std::int32_t>(std::min(i, layers - 1))};
    const TensorId ids = m.node("TOP_K", ("ffn_moe_topk-" + layer).c_str(), {kUsed, tokens}, {x});
    m.slot(SlotKind::Experts, ids, id);
    const auto scores =
        m.node("GET_ROWS", ("ffn_moe_weights-" + layer).c_str(), {1, kUsed, tokens}, {x, ids});
    m.slot(SlotKind::ExpertScores, scores, id);
    const TensorId weight =
        m.weight(("blk." + layer + ".ffn_up_exps.weight").c_str(), {2, 4, kExperts});
    m.graph.tensors[weight.v].file = {.file = 0, .offset = 4096 * (i + 1), .length = 32 * kExperts};
    m.graph.tensors[weight.v].layer = id;
    m.node("MUL_MAT_ID", ("ffn_moe_up-" + layer).c_str(), {4, kUsed, tokens}, {weight, x, ids});
  }
  return std::move(m.graph);
}

// A prompt and then single-token steps.
RandomSession random_routing(std::uint64_t seed) {
  Dice dice(seed);
  RandomSession s;
  s.info.id = "routed";
  s.info.state = SessionState::Done;
  s.info.n_experts = kExperts;
  const auto layers = static_cast<std::uint32_t>(1 + dice.below(3));
  const auto prompt = static_cast<std::uint32_t>(1 + dice.below(6));
  s.templates = {routed_graph(layers, prompt), routed_graph(layers, 1)};
  std::uint32_t token = 0;
  const std::uint64_t skew = dice.below(3);
  for (std::uint32_t i = 0; i < 3 + dice.below(20); ++i) {
    Step step;
    step.id = StepId{i};
    step.phase = i == 0 ? Phase::Prompt : Phase::Generate;
    step.graph = TemplateId{i == 0 ? 1U : 2U};
    step.first_token = token;
    step.n_tokens = i == 0 ? prompt : 1;
    const GraphTemplate& graph = s.templates[step.graph.v - 1];
    step.op_ends.resize(graph.ops.size());
    step.slots.resize(dice.one_in(10) ? 0 : graph.slots.size());
    for (std::size_t k = 0; k < step.slots.size(); ++k) {
      SlotValues& values = step.slots[k];
      const SlotKind kind = graph.slots[k].kind;
      if (kind == SlotKind::OutputIds) {
        values.ints = {step.n_tokens - 1};
        continue;
      }
      // The last router of a prompt computes the last token only; sometimes its index is unknown.
      const bool last_only = k + 2 >= step.slots.size() && step.n_tokens > 1;
      const std::size_t tokens = last_only ? 1 + dice.below(2) : step.n_tokens;
      for (std::size_t n = tokens * kUsed; n > 0; --n) {
        if (kind == SlotKind::Experts) {
          const auto below = static_cast<std::uint64_t>(kExperts) >> dice.below(skew + 1);
          values.ints.push_back(dice.one_in(40) ? dice.any_i64()
                                                : static_cast<std::int64_t>(dice.below(below)));
        } else {
          values.floats.push_back(dice.one_in(20) ? std::nanf("")
                                                  : 0.125F * static_cast<float>(dice.below(9)));
        }
      }
    }
    token += step.n_tokens;
    s.steps.push_back(std::move(step));
  }
  for (std::uint32_t i = 0; i < token; ++i) {
    const auto id = static_cast<std::int32_t>(dice.below(5));
    s.tokens.push_back({.index = i, .id = id, .text = std::string(1, static_cast<char>('a' + id))});
  }
  return s;
}

TEST(Experts, CountsMatchManualResult) {
  TempFolder folder;
  RandomSession s;
  s.info.id = "hand";
  s.info.n_experts = kExperts;
  s.info.state = SessionState::Done;
  s.templates = {routed_graph(1, 1)};
  // One layer with two routers; the first selects 3 and 1, 3 and 2, 3 and 1.
  const std::vector<std::vector<std::int64_t>> chosen = {{3, 1}, {3, 2}, {3, 1}};
  for (std::uint32_t i = 0; i < 3; ++i) {
    Step step;
    step.id = StepId{i};
    step.phase = Phase::Generate;
    step.graph = TemplateId{1};
    step.first_token = i;
    step.n_tokens = 1;
    step.op_ends.resize(s.templates[0].ops.size());
    step.slots = {{.ints = {0}, .floats = {}},
                  {.ints = chosen[i], .floats = {}},
                  {.ints = {}, .floats = {.75F, .25F}},
                  {.ints = {0, 1}, .floats = {}},
                  {.ints = {}, .floats = {}}};
    s.steps.push_back(std::move(step));
    s.tokens.push_back({.index = i, .id = i == 1 ? 7 : 5, .text = i == 1 ? "b" : "a"});
  }
  ASSERT_TRUE(write_session(folder / "s.ttrace", s).has_value());
  const auto reader = SessionReader::open(folder / "s.ttrace");
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(expect_experts(*reader), 12U);

  const auto routers = expert_use(*reader, std::nullopt);
  ASSERT_TRUE(routers.has_value());
  ASSERT_EQ(routers->size(), 2U);
  const RouterUse& first = routers->front();
  EXPECT_EQ(first.experts, 8U);
  EXPECT_EQ(first.per_token, 2U);
  EXPECT_EQ(first.tokens, 3U);
  EXPECT_DOUBLE_EQ(first.coverage(), 3.0 / 8);
  EXPECT_DOUBLE_EQ(first.turnover(), 0.5) << "one of two changes, twice";
  // Shares 1/2, 1/3, 1/6.
  EXPECT_NEAR(first.entropy(), 0.5 + std::log2(3.0) / 3 + std::log2(6.0) / 6, 1e-12);
  EXPECT_EQ(first.used[2],
            (ExpertCount{.expert = 3, .choices = 3, .first = 3, .score = 2.25, .scored = 3}));
  EXPECT_EQ((*routers)[1].router, 1U);
  EXPECT_DOUBLE_EQ((*routers)[1].turnover(), 0);

  const auto detail = router_detail(*reader, LayerId{0}, 0, std::nullopt, {});
  ASSERT_TRUE(detail.has_value());
  ASSERT_EQ(detail->pairs.size(), 2U);
  EXPECT_EQ(detail->pairs[0], (ExpertPair{.a = 1, .b = 3, .together = 2, .lift = 1}));
  // Expert 1 was selected for both "a" of three tokens: too few to say anything.
  for (const auto& tokens : detail->tokens) EXPECT_TRUE(tokens.empty());
}

// A layer whose router chooses expert 1 for "a" and experts 2 and 3 for all others. `times`: of
// "a".
RandomSession session_with_a(std::uint32_t times) {
  RandomSession s;
  s.info.id = "prefers";
  s.info.n_experts = kExperts;
  s.info.state = SessionState::Done;
  s.templates = {routed_graph(1, 1)};
  for (std::uint32_t i = 0; i < times + 20; ++i) {
    const bool is_a = i % 2 == 0 && i / 2 < times;
    Step step;
    step.id = StepId{i};
    step.phase = Phase::Generate;
    step.graph = TemplateId{1};
    step.first_token = i;
    step.n_tokens = 1;
    step.op_ends.resize(s.templates[0].ops.size());
    const std::vector<std::int64_t> chosen =
        is_a ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{2, 3};
    step.slots = {{.ints = {0}, .floats = {}},
                  {.ints = chosen, .floats = {}},
                  {.ints = {}, .floats = {}},
                  {.ints = {0, 1}, .floats = {}},
                  {.ints = {}, .floats = {}}};
    s.steps.push_back(std::move(step));
    s.tokens.push_back({.index = i, .id = is_a ? 5 : 7, .text = is_a ? "a" : "b"});
  }
  return s;
}

// The counts are those of the steps; an end of the interval is a probability that is 1.96 standard
// deviations from the observed share.
TEST(Experts, ATokenSaysWhatItPrefersOnlyIfItWasSeenFiveTimes) {
  for (const std::uint32_t times : {1U, 4U, 5U, 9U}) {
    SCOPED_TRACE(times);
    const TempFolder folder;
    ASSERT_TRUE(write_session(folder / "s.ttrace", session_with_a(times)).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    const auto detail = router_detail(*reader, LayerId{0}, 0, std::nullopt, {});
    ASSERT_TRUE(detail.has_value());
    ASSERT_EQ(detail->use.used[0].expert, 1U);
    const std::vector<ExpertToken>& tokens = detail->tokens[0];
    if (times < 5) {
      EXPECT_TRUE(tokens.empty());
      continue;
    }
    ASSERT_EQ(tokens.size(), 1U);
    EXPECT_EQ(tokens[0].text, "a");
    EXPECT_EQ(tokens[0].choices, times);
    EXPECT_EQ(tokens[0].times, times);
    const double n = times, share = n / (n + 20);  // of all tokens that chose the expert
    EXPECT_DOUBLE_EQ(tokens[0].lift, 1 / share);
    EXPECT_DOUBLE_EQ(tokens[0].high, 1 / share);
    const double p = tokens[0].low * share;
    EXPECT_NEAR((1 - p) / std::sqrt(p * (1 - p) / n), 1.96, 1e-3);
  }
}

// Of 200 routers with a known distribution, the interval contains the true values of nearly 95 %.
TEST(ExpertLoad, IntervalsContainTheTrueValues) {
  const std::vector<double> weights = {8, 4, 4, 2, 2, 2, 1, 1};
  double all = 0, bits = 0, differences = 0;
  for (const double w : weights) all += w;
  for (const double w : weights) bits -= w / all * std::log2(w / all);
  for (const double a : weights)
    for (const double b : weights) differences += std::abs(a - b);
  const double gini = differences / (2 * kExperts * all);
  Dice dice(7);
  int entropies = 0, ginis = 0;
  constexpr int kRouters = 200;
  for (int router = 0; router < kRouters; ++router) {
    LoadBlocks blocks;
    for (int token = 0; token < 300; ++token) {
      std::uint32_t expert = 0;
      auto at = static_cast<double>(dice.below(24));
      while (at >= weights[expert]) at -= weights[expert++];
      blocks.add(std::vector{expert});
    }
    const auto found = blocks.intervals(kExperts);
    ASSERT_TRUE(found.has_value());
    const auto contains = [](const LoadInterval& of, double value) {
      return of.low <= value && value <= of.high;
    };
    entropies += contains(found->entropy, bits);
    ginis += contains(found->gini, gini);
  }
  EXPECT_GE(entropies, 0.88 * kRouters);
  EXPECT_GE(ginis, 0.88 * kRouters);
}

TEST(ExpertLoad, HasNoIntervalsOfFewTokens) {
  LoadBlocks blocks;
  for (std::uint32_t i = 0; i < 4; ++i) {
    blocks.add(std::vector{i});
    EXPECT_FALSE(blocks.intervals(kExperts).has_value());
  }
  blocks.add(std::vector{1U});
  EXPECT_TRUE(blocks.intervals(kExperts).has_value());
  // Always the same expert: as uneven as possible, and certain.
  LoadBlocks one;
  for (int i = 0; i < 10'000; ++i) one.add(std::vector{2U});
  const auto found = one.intervals(kExperts);
  EXPECT_EQ(found->entropy, (LoadInterval{.low = 0, .high = 0}));
  EXPECT_DOUBLE_EQ(found->gini.low, 7.0 / 8);
  EXPECT_DOUBLE_EQ(found->gini.high, 7.0 / 8);
}

TEST(Experts, MatchReferenceOnAnySession) {
  std::uint64_t choices = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    TempFolder folder;
    ASSERT_TRUE(write_session(folder / "s.ttrace", random_routing(seed)).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    choices += expect_experts(*reader);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(choices, 2000U);
}

TEST(Experts, AcceptAnyTemplate) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    TempFolder folder;
    ASSERT_TRUE(write_session(folder / "s.ttrace", random_session(seed)).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    const auto routers = expert_use(*reader, std::nullopt);
    ASSERT_TRUE(routers.has_value());
    for (const RouterUse& use : *routers) {
      EXPECT_GE(use.entropy(), 0);
      EXPECT_LE(use.gini(), 1);
      EXPECT_TRUE(router_detail(*reader, use.layer, use.router, std::nullopt, {}).has_value());
    }
    EXPECT_TRUE(token_experts(*reader, std::nullopt, {.from = 3, .limit = 5}).has_value());
    EXPECT_TRUE(expert_pinning(*reader, {}).has_value());
  }
}

TEST(Experts, ModelWithoutExpertsIsNotAnError) {
  const SmallSession session({small_step(0), small_step(1)});
  const SessionReader reader = session.reader();
  EXPECT_EQ(expect_experts(reader), 0U);
  const auto pinning = expert_pinning(reader, {});
  ASSERT_TRUE(pinning.has_value());
  EXPECT_EQ(pinning->read, Bytes{0});
  EXPECT_GT(pinning->weights_read, Bytes{0});
  EXPECT_EQ(pinning->best_gain(), nullptr);
  const auto detail = router_detail(reader, LayerId{0}, 0, std::nullopt, {});
  ASSERT_FALSE(detail.has_value());
  EXPECT_EQ(detail.error().kind, TraceError::Kind::NotFound);
  EXPECT_TRUE(detail.error().message.contains("no experts")) << detail.error().message;
}

TEST(Experts, CanBeCancelled) {
  const SmallSession session({small_step(0), small_step(1)});
  const SessionReader reader = session.reader();
  const auto cancelled = [] { return false; };
  EXPECT_EQ(expert_use(reader, std::nullopt, cancelled).error().kind, TraceError::Kind::Cancelled);
  EXPECT_EQ(expert_pinning(reader, {}, cancelled).error().kind, TraceError::Kind::Cancelled);
}

// Every other read is of slice 0, the others are of new slices: an LRU cache of one slice never
// hits, a pinned slice does.
TEST(ExpertPinning, BeatsLruWhenOneExpertAlternatesWithNewOnes) {
  ReadSequence sequence;
  for (std::uint32_t i = 0; i < 40; ++i) {
    sequence.items.push_back({.tensor = "exps",
                              .expert = static_cast<std::int32_t>(i),
                              .file = {.file = 0, .offset = 100 * i, .length = 100},
                              .layer = LayerId{0}});
  }
  for (std::uint32_t i = 1; i < 40; ++i) {
    sequence.reads.push_back(0);
    sequence.reads.push_back(i);
    ++sequence.items[0].reads;
    ++sequence.items[i].reads;
  }
  const Bytes one{100};
  const ExpertPinning pinning = expert_pinning(sequence, std::span(&one, 1)).value();
  ASSERT_NE(pinning.best_gain(), nullptr);
  EXPECT_EQ(pinning.curve[0].lru, Bytes{0});
  EXPECT_EQ(pinning.curve[0].pinned, Bytes{38 * 100});
  EXPECT_EQ(pinning.curve[0].slices, 1U);
  EXPECT_EQ(pinning.curve[0].tried_pinned, Bytes{19 * 100});
}

}  // namespace
}  // namespace tt::test
