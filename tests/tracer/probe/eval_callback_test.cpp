// The nodes of our templates, in order, compared with an independent list: the output of
// llama.cpp's own llama-eval-callback for the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <format>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/models/eval_callback.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

std::string sizes_text(const Tensor& tensor) {
  return std::format("{}, {}, {}, {}", tensor.ne[0], tensor.ne[1], tensor.ne[2], tensor.ne[3]);
}

std::vector<PrintedNode> nodes_of(const GraphTemplate& graph) {
  std::vector<PrintedNode> lines;
  for (const Node& node : graph.nodes) {
    const Tensor& output = graph.tensor(node.output);
    PrintedNode line{.name = std::string(trimmed(output.name)),  // names are padded with spaces
                     .type = output.type,
                     .op = node.op,
                     .shape = sizes_text(output),
                     .sources = {}};
    // It prints the kind of a UNARY or GLU node instead of its op.
    if (const auto at = node.op.find('('); at != std::string::npos) {
      line.op = node.op.substr(at + 1, node.op.size() - at - 2);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(2, node.src.size()); ++i) {
      if (node.src[i] == kNoTensor) continue;
      const Tensor& source = graph.tensor(node.src[i]);
      line.sources[i] = std::format("{}{{{}}}", source.name, sizes_text(source));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void expect_same(std::span<const PrintedNode> ours, std::span<const PrintedNode> theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    ASSERT_EQ(ours[i], theirs[i]) << "node " << i;
  }
}

class EvalCallback : public ::testing::TestWithParam<const char*> {};

TEST_P(EvalCallback, ListsSameNodesAsTemplates) {
  const auto model = generated_model({.shape = GetParam()});
  TracedModel traced(model);

  const std::string text = "the old sea and the wind";
  const EvalCallbackRun prompt = run_eval_callback(model, text, TracedModel::small_context());
  const auto ids = traced.engine().tokens_of(text);
  ASSERT_TRUE(ids.has_value()) << ids.error().message;
  EXPECT_EQ(*ids, prompt.tokens);
  ASSERT_GT(ids->size(), 2U);

  GenerationRequest request = greedy_tokens(1, 2);
  request.prompt = text;
  const auto run = traced.run(request);
  const auto steps = run.steps();
  ASSERT_EQ(steps.size(), 2U) << run.result.error;
  expect_same(nodes_of(*graph_of(run.reader(), steps[0])), prompt.nodes);

  // The program evaluates only the prompt. With a ubatch of all tokens but one, the last token
  // is evaluated alone, after what the others left in the cache or state: like a decode.
  ContextOptions cut = TracedModel::small_context();
  cut.ubatch = static_cast<std::uint32_t>(ids->size() - 1);
  const EvalCallbackRun both = run_eval_callback(model, text, cut);
  TracedModel in_two(model, cut);
  const auto cut_run = in_two.run(request);
  const auto cut_steps = cut_run.steps();
  ASSERT_EQ(cut_steps.size(), 3U) << cut_run.result.error;
  ASSERT_EQ(cut_steps[2].phase, Phase::Generate);
  EXPECT_EQ(cut_steps[2].graph, cut_steps[1].graph) << "a generated token uses the same graph";
  const auto first_graph = graph_of(cut_run.reader(), cut_steps[0]);
  const auto decode_graph = graph_of(cut_run.reader(), cut_steps[2]);
  ASSERT_GT(both.nodes.size(), first_graph->nodes.size());
  const auto [first, decode] = std::pair(std::span(both.nodes).first(first_graph->nodes.size()),
                                         std::span(both.nodes).subspan(first_graph->nodes.size()));
  expect_same(nodes_of(*first_graph), first);
  expect_same(nodes_of(*decode_graph), decode);
  expect_same(nodes_of(*graph_of(run.reader(), steps[1])), decode);

  // The same list in exact mode: fused pairs are one op there as well.
  request.exact_timing = true;
  const auto exact = traced.run(request);
  for (std::size_t i = 0; i < 2; ++i) {
    // Recurrent models reallocate a graph; learning it is exact as well.
    EXPECT_NE(exact.steps()[i].timing, Timing::Fast);
    EXPECT_EQ(*graph_of(exact.reader(), exact.steps()[i]), *graph_of(run.reader(), steps[i]));
    EXPECT_EQ(exact.steps()[i].op_ends.size(), graph_of(run.reader(), steps[i])->ops.size());
  }
  const auto pairs = std::ranges::count(decode_graph->ops, 2U, &Op::nodes);
  std::printf("%s: prompt of %zu tokens %zu nodes, decode %zu nodes, %zu ops, %td fused pairs\n",
              GetParam(), ids->size(), prompt.nodes.size(), decode.size(), decode_graph->ops.size(),
              pairs);
}

// Six architectures: llama, qwen3moe, gpt-oss, deepseek2, mamba and rwkv7.
INSTANTIATE_TEST_SUITE_P(Shapes, EvalCallback,
                         ::testing::Values("small", "moe", "qwen3-moe-like", "gpt-oss-like",
                                           "deepseek-like", "mamba", "rwkv"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tt::test
