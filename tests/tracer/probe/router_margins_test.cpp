// Router scores of a model that chooses among some groups of experts only. Other routers:
// tests/cli/values_test.cpp, with numpy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "analysis/experts/router_margins.h"
#include "analysis/experts/routing.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

constexpr std::uint32_t kGroups = 4, kGroupsUsed = 2, kExperts = 16;

std::uint32_t group_of(const ScoredExpert& of) { return of.expert / (kExperts / kGroups); }

TEST(RouterMargins, LeaveOutGroupsThatCannotBeChosen) {
  const TempFolder folder;
  const auto path =
      with_changes(generated_model({.shape = "deepseek-like", .dims = {.layers = 3}}),
                   folder / "groups.gguf", [](gguf_context* gguf) {
                     gguf_set_val_u32(gguf, "deepseek2.expert_group_count", kGroups);
                     gguf_set_val_u32(gguf, "deepseek2.expert_group_used_count", kGroupsUsed);
                   });
  TracedModel traced(path);
  GenerationRequest request = greedy_tokens(20, 4);
  request.capture = {"router"};
  const auto run = traced.run(request);
  const auto page = token_margins(run.reader(), {.page = kAllRows});
  ASSERT_TRUE(page.has_value());
  // The routing that is recorded without the scores.
  std::vector<RoutingRow> routing;
  for (const Step& step : run.steps())
    routing.append_range(routing_rows(*graph_of(run.reader(), step), step));
  std::size_t at = 0;
  for (const TokenMargin& row : page->rows) {
    std::set<std::uint32_t> groups;
    for (const ScoredExpert& expert : row.chosen) {
      groups.insert(group_of(expert));
      ASSERT_LT(at, routing.size());
      EXPECT_EQ(routing[at].layer, row.layer);
      EXPECT_EQ(routing[at].token, row.token);
      EXPECT_EQ(routing[at++].expert, expert.expert);
    }
    // 4 of the 8 experts in the two groups were chosen, so the other 4 are next.
    EXPECT_EQ(row.next.size(), kNextExperts);
    for (const ScoredExpert& expert : row.next) groups.insert(group_of(expert));
    EXPECT_EQ(groups.size(), kGroupsUsed);
    ASSERT_TRUE(row.margin.has_value());
    EXPECT_GE(*row.margin, 0);
    double last = row.chosen.front().score;
    for (const ScoredExpert& expert : row.chosen) last = std::min(last, expert.score);
    EXPECT_EQ(*row.margin, last - row.next.front().score);
    for (const ScoredExpert& expert : row.chosen) EXPECT_TRUE(expert.probability.has_value());
  }
  EXPECT_EQ(at, routing.size());
  EXPECT_GT(page->total, 20U);
  const auto table = router_margins(run.reader(), 0.01);
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->routers.size(), 2U) << "layer 0 is dense";
  for (const RouterMargins& router : table->routers) {
    EXPECT_TRUE(router.scores.starts_with("ffn_moe_probs_masked")) << router.scores;
    EXPECT_EQ(router.experts, kExperts);
  }
}

}  // namespace
}  // namespace tt::test
