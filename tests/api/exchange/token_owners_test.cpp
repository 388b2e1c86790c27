// Which tokens an access belongs to, also in steps whose lists are damaged.
#include "api/exchange/rows/token_owners.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/sessions/graph_maker.h"

namespace tt::test {
namespace {

using exchange::TokenOwner;
using exchange::TokenOwners;

// The last layer of a step with four tokens, of which two are computed. Each chooses two experts.
struct LastLayer {
  GraphMaker m;
  Step step;
  std::vector<Access> accesses;
  LastLayer() {
    const auto outputs = m.input("inp_out_ids", {2});
    const auto chosen = m.input("ffn_moe_topk-1", {2, 2});
    m.slot(SlotKind::OutputIds, outputs);
    m.slot(SlotKind::Experts, chosen, LayerId{1});
    step.n_tokens = 4;
    step.slots = {{.ints = {1, 3}, .floats = {}}, {.ints = {7, 5, 5, 6}, .floats = {}}};
    Access experts;
    experts.extent = Extent::Experts;
    experts.slot = SlotId{1};
    accesses = {experts};
  }
  using Tokens = std::vector<std::pair<std::uint32_t, std::int32_t>>;  // with the expert's rank
  Tokens owners_of(std::int32_t expert) const {
    TokenOwners owners(m.graph, accesses, step);
    StepAccess access;
    access.expert = expert;
    Tokens tokens;
    for (const TokenOwner& owner : owners.of(access)) tokens.emplace_back(owner.token, owner.rank);
    return tokens;
  }
};

TEST(TokenOwners, AreTheTokensThatChoseTheExpert) {
  const LastLayer layer;
  EXPECT_EQ(layer.owners_of(7), (LastLayer::Tokens{{1, 0}}));
  EXPECT_EQ(layer.owners_of(5), (LastLayer::Tokens{{1, 1}, {3, 0}}));
  EXPECT_EQ(layer.owners_of(0), LastLayer::Tokens{});
}

TEST(TokenOwners, FirstChoiceOfATokenCounts) {
  LastLayer layer;
  layer.step.slots[1].ints = {5, 5, 6, 5};
  EXPECT_EQ(layer.owners_of(5), (LastLayer::Tokens{{1, 0}, {3, 1}}));
}

// An index outside of the step hides whose its experts are, and leaves the others known.
TEST(TokenOwners, AreUnknownOnlyForTheExpertsOfAnUnknownToken) {
  LastLayer layer;
  layer.step.slots[0].ints = {1, 4};
  EXPECT_EQ(layer.owners_of(7), (LastLayer::Tokens{{1, 0}}));
  EXPECT_EQ(layer.owners_of(5), LastLayer::Tokens{});
  EXPECT_EQ(layer.owners_of(6), LastLayer::Tokens{});
}

}  // namespace
}  // namespace tt::test
