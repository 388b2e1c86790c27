// Routing rows of a step.
#include "analysis/experts/routing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/sessions/graph_maker.h"

namespace tt::test {
namespace {

// Two layers that select two experts per token; the last layer computes the output tokens only.
struct Routed {
  GraphMaker m;
  Step step;
  Routed() {
    const auto first = m.input("ffn_moe_topk-0", {2, 3});
    const auto weights = m.input("ffn_moe_weights-0", {1, 2, 3}, kF32);
    const auto outputs = m.input("inp_out_ids", {1});
    const auto last = m.input("ffn_moe_topk-1", {2, 1});
    m.slot(SlotKind::Experts, first, LayerId{0});
    m.slot(SlotKind::ExpertScores, weights, LayerId{0});
    m.slot(SlotKind::OutputIds, outputs);
    m.slot(SlotKind::Experts, last, LayerId{1});
    step.first_token = 10;
    step.n_tokens = 3;
    step.slots = {{.ints = {4, 1, 0, 2, 1, 3}, .floats = {}},
                  {.ints = {}, .floats = {.6F, .4F, .9F, .1F, .5F, .5F}},
                  {.ints = {2}, .floats = {}},
                  {.ints = {7, 5}, .floats = {}}};
  }
};

TEST(Routing, HasOneRowPerLayerTokenAndRank) {
  const Routed routed;
  const auto rows = routing_rows(routed.m.graph, routed.step);
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[0], (RoutingRow{LayerId{0}, 10, 4, 0, .6F}));
  EXPECT_EQ(rows[1], (RoutingRow{LayerId{0}, 10, 1, 1, .4F}));
  EXPECT_EQ(rows[4], (RoutingRow{LayerId{0}, 12, 1, 0, .5F}));
  EXPECT_EQ(rows[6].layer, LayerId{1});
  EXPECT_EQ(rows[6].token, 12u);  // the output token
  EXPECT_EQ(rows[7].expert, 5u);
  EXPECT_EQ(rows[7].rank, 1u);
  EXPECT_TRUE(std::isnan(rows[7].score));  // not recorded for this layer
}

TEST(Routing, ReportsUnknownTokens) {
  Routed routed;
  for (const std::vector<std::int64_t>& outputs :
       {std::vector<std::int64_t>{}, {0, 1}, {3}, {-1}}) {
    routed.step.slots[2].ints = outputs;
    EXPECT_EQ(routing_rows(routed.m.graph, routed.step)[6].token, kNone);
  }
}

// A wrong index says nothing about the other entries, nor does a list that is not of these entries.
TEST(Routing, TokensOfDamagedListsAreUnknownOneByOne) {
  GraphMaker m;
  for (int i = 0; i < 2; ++i) m.slot(SlotKind::OutputIds, m.input("inp_out_ids", {2}));
  Step step;
  step.n_tokens = 4;
  step.slots = {{.ints = {0}, .floats = {}}, {.ints = {3, 4}, .floats = {}}};
  using Tokens = std::vector<std::uint32_t>;
  EXPECT_EQ(slot_tokens(m.graph, step, 4), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(slot_tokens(m.graph, step, 2), (Tokens{3, kNone}));
  EXPECT_EQ(slot_tokens(m.graph, step, 3), (Tokens{kNone, kNone, kNone}));
  EXPECT_EQ(slot_tokens(m.graph, step, 0), Tokens{});
}

TEST(Routing, StepWithoutSlotsIsEmpty) {
  Routed routed;
  routed.step.slots.clear();
  EXPECT_TRUE(routing_rows(routed.m.graph, routed.step).empty());
}

}  // namespace
}  // namespace tt::test
