// A graph that has the structure of a known one, such as that of a prompt with another length, is
// not split when it is new. What is recorded of it is what a fresh probe learns by splitting it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

struct StructureModel {
  std::string name;
  bool architecture = false;  // of the llama.cpp tests
  std::filesystem::path path() const {
    return architecture ? arch_model(name) : two_layer_model(name);
  }
};

class Structure : public ::testing::TestWithParam<StructureModel> {};

TEST_P(Structure, OfAnotherLengthGivesTheSameRecordingAsLearning) {
  const std::filesystem::path model = GetParam().path();
  TracedModel traced(model);
  ASSERT_EQ(traced.run(greedy_tokens(20, 3)).steps().at(0).timing, Timing::Learned);
  std::map<Timing, int> timing;
  for (const std::size_t length : {33U, 7U, 64U}) {
    SCOPED_TRACE(length);
    const auto followed = traced.run(greedy_tokens(length, 3));
    EXPECT_EQ(followed.recording.losses, LossCounters{});
    TracedModel fresh(model);
    const auto learned = fresh.run(greedy_tokens(length, 3));
    const auto steps = followed.steps(), expected = learned.steps();
    EXPECT_EQ(steps.at(0).timing, Timing::Fast);
    EXPECT_EQ(expected.at(0).timing, Timing::Learned);
    ASSERT_EQ(steps.size(), expected.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      SCOPED_TRACE(i);
      ++timing[steps[i].timing];
      const auto graph = graph_of(followed.reader(), steps[i]);
      EXPECT_EQ(*graph, *graph_of(learned.reader(), expected[i]));
      EXPECT_EQ(steps[i].slots, expected[i].slots);
      ASSERT_EQ(steps[i].op_ends.size(), graph->ops.size());
      EXPECT_TRUE(std::ranges::is_sorted(steps[i].op_ends));
      EXPECT_LE(steps[i].begin, steps[i].first_op);
      EXPECT_LE(steps[i].first_op, steps[i].op_ends.front());
      EXPECT_LE(steps[i].op_ends.back(), steps[i].end);
    }
  }
  std::printf("%s: of 3 prompts with 3 tokens each %d steps fast, %d learned\n",
              GetParam().name.c_str(), timing[Timing::Fast], timing[Timing::Learned]);
  EXPECT_EQ(timing[Timing::Exact], 0);
}

// Value statistics and exact times need the split points.
TEST(StructureOptions, SplitWhatIsAskedFor) {
  TracedModel traced(two_layer_model("small"));
  (void)traced.run(greedy_tokens(20, 1));
  GenerationRequest exact = greedy_tokens(21, 1);
  exact.exact_timing = true;
  EXPECT_EQ(traced.run(exact).steps().at(0).timing, Timing::Learned);
  GenerationRequest verbose = greedy_tokens(22, 1);
  verbose.level = Level::Verbose;
  verbose.stats_pattern = "ffn_out.*";
  const auto run = traced.run(verbose);
  EXPECT_EQ(run.steps().at(0).timing, Timing::Learned);
  EXPECT_EQ(run.steps().at(0).stats.size(), 2U) << "one in each layer";
  EXPECT_EQ(traced.run(greedy_tokens(23, 1)).steps().at(0).timing, Timing::Fast);
}

INSTANTIATE_TEST_SUITE_P(Models, Structure,
                         ::testing::Values(StructureModel{"small"}, StructureModel{"moe"},
                                           StructureModel{"gpt-oss-like"},
                                           StructureModel{"deepseek-like"}, StructureModel{"mamba"},
                                           StructureModel{"rwkv"},
                                           StructureModel{"gemma3-dense", true},
                                           StructureModel{"jamba-dense", true}),
                         [](const auto& model) {
                           std::string name = model.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tt::test
