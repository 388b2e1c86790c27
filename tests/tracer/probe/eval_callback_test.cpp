// The nodes of our templates, in order, compared with an independent list: the output of
// llama.cpp's own llama-eval-callback for the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <fstream>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tracer/engine/backends.h"
#include "tracer/gguf/gguf_index.h"

namespace tt::test {
namespace {

struct Line {
  std::string name, type, op, shape;
  std::array<std::string, 2> sources;  // "name{shape}"; empty: none
  friend bool operator==(const Line&, const Line&) = default;
};

std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << std::format("{} = ({}) {}({}, {}) = {{{}}}", line.name, line.type, line.op,
                            line.sources[0], line.sources[1], line.shape);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "common_debug_cb_eval:  NAME = (TYPE)  OP(SRC{a, b, c, d}, SRC{a, b, c, d}}) = {a, b, c, d}"
bool parse(std::string_view text, Line& line) {
  constexpr std::string_view kPrefix = "common_debug_cb_eval:";
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  const auto type_at = text.find(" = (");
  const auto type_end = text.find(')', type_at);
  const auto op_end = text.find('(', type_end);
  const auto shape_at = text.rfind(") = {");
  if (type_at == std::string::npos || op_end == std::string::npos || shape_at == std::string::npos)
    return false;
  line.name = trimmed(text.substr(0, type_at));
  line.type = text.substr(type_at + 4, type_end - type_at - 4);
  line.op = trimmed(text.substr(type_end + 1, op_end - type_end - 1));
  line.shape = text.substr(shape_at + 5, text.rfind('}') - shape_at - 5);
  std::string_view sources = text.substr(op_end + 1, shape_at - op_end - 1);
  const auto first_end = sources.find("}, ");
  line.sources[0] = sources.substr(0, first_end + 1);
  sources.remove_prefix(first_end + 3);
  line.sources[1] = sources.substr(0, sources.size() - 1);  // an extra closing brace is printed
  return true;
}

struct Independent {
  std::vector<std::int32_t> tokens;
  std::vector<Line> nodes;
};

Independent eval_callback(const std::filesystem::path& model, const std::string& prompt,
                          const ContextOptions& context) {
  const TempFolder folder;
  ensure_backends_loaded();
  const auto index = GgufIndex::open(model);
  EXPECT_TRUE(index.has_value());
  const char* repack = index && repacking_error(*index).empty() ? "--repack" : "--no-repack";
  const std::string command = std::format(
      "LD_PRELOAD='{}' '{}' -m '{}' -p '{}' -c {} -b {} -ub {} -t {} -ngl 0 -n 1 {} "
      "> '{}' 2> '{}'",
      kTestPaths.log_flush, kTestPaths.eval_callback, model.string(), prompt, context.context,
      context.batch, context.ubatch, context.threads, repack, (folder / "nodes").string(),
      (folder / "log").string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  Independent result;
  Line node;
  std::ifstream nodes(folder / "nodes");
  for (std::string line; std::getline(nodes, line);) {
    if (parse(line, node)) result.nodes.push_back(node);
  }
  std::ifstream log(folder / "log");
  bool listing = false;  // the ids follow "number of input tokens", one per line
  for (std::string line; std::getline(log, line);) {
    if (line.contains("number of input tokens")) {
      listing = true;
    } else if (const auto at = line.find(" I   "); listing && at != std::string::npos) {
      result.tokens.push_back(std::stoi(line.substr(at + 5)));
    }
  }
  return result;
}

std::string sizes_text(const Tensor& tensor) {
  return std::format("{}, {}, {}, {}", tensor.ne[0], tensor.ne[1], tensor.ne[2], tensor.ne[3]);
}

std::vector<Line> nodes_of(const GraphTemplate& graph) {
  std::vector<Line> lines;
  for (const Node& node : graph.nodes) {
    const Tensor& output = graph.tensor(node.output);
    Line line{.name = std::string(trimmed(output.name)),  // names are padded with spaces
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

void expect_same(std::span<const Line> ours, std::span<const Line> theirs) {
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
  const Independent prompt = eval_callback(model, text, TracedModel::small_context());
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
  const Independent both = eval_callback(model, text, cut);
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
