// Routed experts are read while the graph runs, without splitting it. The same generation is
// read in three ways: like that, in exact mode, and by a plain cb_eval that stops at the
// router's own nodes and shares no code with the probe.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/weights/pattern.h"
#include "tests/analysis/experts/expert_check.h"
#include "tests/analysis/tables/order_check.h"
#include "tests/support/models/plain_llama.h"
#include "tests/support/models/traced_model.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

struct Routing {
  std::vector<std::int64_t> experts;  // token-major, by rank
  std::vector<float> scores;
};
using LayerRouting = std::map<std::int32_t, Routing>;  // by layer

LayerRouting routing_of(const GraphTemplate& graph, const Step& step) {
  LayerRouting layers;
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const Slot& slot = graph.slots[i];
    Routing& routing = layers[slot.layer.v];
    if (slot.kind == SlotKind::Experts) {
      EXPECT_TRUE(routing.experts.empty()) << "two lists of experts in layer " << slot.layer.v;
      routing.experts = step.slots[i].ints;
    } else if (slot.kind == SlotKind::ExpertScores) {
      EXPECT_TRUE(routing.scores.empty()) << "two lists of scores in layer " << slot.layer.v;
      routing.scores = step.slots[i].floats;
    }
  }
  std::erase_if(layers, [](const auto& layer) { return layer.second.experts.empty(); });
  return layers;
}

// Reads the router's nodes by name: "ffn_moe_topk-3", and of the "ffn_moe_weights...-3" the
// last one that has one weight per expert.
class NamedReading {
 public:
  bool watch(const ggml_tensor& node, bool ask) {
    const std::string_view name = node.name;
    const bool topk = name.starts_with("ffn_moe_topk-");
    const bool weights = name.starts_with("ffn_moe_weights");
    if (ask || (!topk && !weights)) return !ask || topk || weights;
    Routing& routing = layers_[std::stoi(node.name + name.find('-') + 1)];
    if (topk) {
      routing.experts = ints_of(node);
    } else if (static_cast<std::size_t>(ggml_nelements(&node)) == routing.experts.size()) {
      routing.scores = floats_of(node);
    }
    return true;
  }
  LayerRouting take() { return std::exchange(layers_, {}); }

 private:
  LayerRouting layers_;
};

struct RoutedCase {
  const char* shape;
  int threads;
  bool scores_fall;  // deepseek selects by score plus bias, so its ranks do not follow the weight
  friend std::ostream& operator<<(std::ostream& out, const RoutedCase& c) {
    return out << c.shape << ", " << c.threads << " threads";
  }
};

class Experts : public ::testing::TestWithParam<RoutedCase> {};

TEST_P(Experts, MatchInFastExactAndPlainReadings) {
  const auto model = generated_model({.shape = GetParam().shape});
  ContextOptions options = TracedModel::small_context();
  options.threads = GetParam().threads;
  TracedModel traced(model, options);
  const ModelFacts& facts = traced.engine().facts();

  GenerationRequest request = greedy_tokens(17, 5);
  traced.run(request);  // learns the graphs
  const auto fast = traced.run(request);
  request.exact_timing = true;
  const auto exact = traced.run(request);

  NamedReading reading;
  PlainLlama plain(model, options,
                   [&](const ggml_tensor& node, bool ask) { return reading.watch(node, ask); });
  std::vector<std::int32_t> next = std::get<std::vector<std::int32_t>>(request.prompt);

  EXPECT_GT(expect_experts(fast.reader()), 0U);
  const auto fast_steps = fast.steps();
  const auto exact_steps = exact.steps();
  ASSERT_EQ(fast_steps.size(), 5U);
  ASSERT_EQ(exact_steps.size(), 5U);
  for (std::size_t i = 0; i < fast_steps.size(); ++i) {
    SCOPED_TRACE(std::format("step {}", i));
    const Step& step = fast_steps[i];
    ASSERT_EQ(step.timing, Timing::Fast);
    ASSERT_EQ(exact_steps[i].timing, Timing::Exact);
    const auto graph = graph_of(fast.reader(), step);
    const LayerRouting ours = routing_of(*graph, step);
    const LayerRouting cut = routing_of(*graph_of(exact.reader(), exact_steps[i]), exact_steps[i]);
    ASSERT_EQ(ours.size(), cut.size());

    next = {plain.decode(next)};
    const LayerRouting theirs = reading.take();
    ASSERT_EQ(ours.size(), theirs.size());
    EXPECT_GE(ours.size() + 1, facts.n_layers);  // deepseek's first layer is dense
    for (const auto& [layer, routing] : ours) {
      SCOPED_TRACE(std::format("layer {}", layer));
      ASSERT_TRUE(theirs.contains(layer));
      ASSERT_TRUE(cut.contains(layer));
      EXPECT_EQ(routing.experts, cut.at(layer).experts);
      EXPECT_EQ(routing.scores, cut.at(layer).scores);
      EXPECT_EQ(routing.experts, theirs.at(layer).experts);
      EXPECT_EQ(routing.scores, theirs.at(layer).scores);

      // The last layer of a prompt computes only the tokens whose logits are requested.
      const std::size_t tokens = layer + 1 == static_cast<int>(facts.n_layers) ? 1 : step.n_tokens;
      ASSERT_EQ(routing.experts.size(), tokens * facts.n_experts_used);
      for (std::size_t token = 0; token < tokens; ++token) {
        const auto first = static_cast<std::ptrdiff_t>(token * facts.n_experts_used);
        const auto last = first + static_cast<std::ptrdiff_t>(facts.n_experts_used);
        std::vector<std::int64_t> chosen(routing.experts.begin() + first,
                                         routing.experts.begin() + last);
        std::ranges::sort(chosen);
        EXPECT_GE(chosen.front(), 0);
        EXPECT_LT(chosen.back(), std::int64_t{facts.n_experts});
        EXPECT_TRUE(std::ranges::adjacent_find(chosen) == chosen.end()) << "duplicate expert";
        if (GetParam().scores_fall) {
          EXPECT_TRUE(std::is_sorted(routing.scores.begin() + first, routing.scores.begin() + last,
                                     std::greater<>()))
              << "the first expert must have the highest weight";
        }
      }
    }
  }
}

// The rows that users see: one per expert, with its file range, best rank and score.
TEST(ExpertAccesses, OneRowPerRoutedExpertOfDecode) {
  TracedModel traced(generated_model({.shape = "moe"}));
  const ModelFacts& facts = traced.engine().facts();
  const auto run = traced.run(greedy_tokens(9, 2));
  const Step decode = run.steps().at(1);
  const auto graph = graph_of(run.reader(), decode);
  const LayerRouting routing = routing_of(*graph, decode);
  std::map<std::string, std::size_t> rows;  // per expert matrix
  for_each_access(*graph, accesses_of(*graph), decode, [&](const StepAccess& access) {
    if (access.expert < 0) return;
    const Tensor& tensor = graph->tensor(access.tensor);
    ++rows[tensor.name];
    const Routing& layer = routing.at(tensor.layer.v);
    const auto rank = static_cast<std::size_t>(access.rank);
    ASSERT_LT(rank, facts.n_experts_used);
    EXPECT_EQ(layer.experts.at(rank), access.expert);
    EXPECT_EQ(layer.scores.at(rank), access.score);
    const FileRange whole = traced.engine().gguf().find(tensor.name)->file;
    const std::uint64_t slice = whole.length / facts.n_experts;
    EXPECT_EQ(access.touched.v, slice);
    EXPECT_EQ(access.range,
              (FileRange{.file = whole.file,
                         .offset = whole.offset + static_cast<std::uint64_t>(access.expert) * slice,
                         .length = slice}));
  });
  EXPECT_EQ(rows.size(), std::size_t{facts.n_layers} * 3);
  for (const auto& [name, count] : rows) EXPECT_EQ(count, facts.n_experts_used) << name;
}

// The biases of experts are rows of a weight, as token embeddings are, but the router chooses them:
// other tokens alone cannot change more than the row of the embeddings.
TEST(ExpertAccesses, BiasesOfOtherExpertsAreNoDifferenceOfTokens) {
  TracedModel traced(two_layer_model("gpt-oss-like"));
  const auto run = traced.run(greedy_tokens(9, 24));
  const SessionReader reader = run.reader();
  expect_pattern(reader);
  const auto found = determinism(reader);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  const auto differing = [&](Cause cause) {
    return found->differing[static_cast<std::size_t>(cause)];
  };
  EXPECT_GT(found->pairs, 10U);
  EXPECT_LE(differing(Cause::Token), found->pairs);
  // Three matrices with a bias each per layer, and the same choice changes all six.
  EXPECT_GT(differing(Cause::Experts), 0U);
  EXPECT_EQ(differing(Cause::Experts) % 6, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Experts,
    ::testing::Values(RoutedCase{"moe", 1, true}, RoutedCase{"moe", 2, true},
                      RoutedCase{"qwen3-moe-like", 1, true}, RoutedCase{"qwen3-moe-like", 2, true},
                      RoutedCase{"gpt-oss-like", 1, true}, RoutedCase{"gpt-oss-like", 2, true},
                      RoutedCase{"deepseek-like", 1, false}, RoutedCase{"deepseek-like", 2, false}),
    [](const auto& param) {
      std::string name = std::format("{}_{}_threads", param.param.shape, param.param.threads);
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace tt::test
