// tt attach on versions of ggml whose ggml_tensor has other offsets: they are found, or the program
// runs untraced and a message names the field. The libraries are other_ggml.cpp.
#include <algorithm>
#include <array>
#include <cstdint>
#include <format>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/attach/attach_fixture.h"

namespace tt {
namespace {

class OtherVersions : public Attach {
 protected:
  static constexpr int kSteps = 5;
  static std::string library(const std::string& name) { return built_program(name + ".so"); }
  // `variables`: of other_ggml.cpp.
  static std::string command(const std::string& name, const std::string& variables) {
    return std::format("env {} {} {} {}", variables, built_program("other_program"), library(name),
                       kSteps);
  }
  // Records it. The program's output is the same, with the number of calls of its abort callback.
  Result record(const std::string& name, const std::string& variables) {
    fs::remove_all(folder / "traces");
    const Result without = plain(command(name, variables));
    EXPECT_EQ(without.code, 0) << without.err;
    Result with = attached(command(name, variables));
    EXPECT_EQ(with.code, 0) << with.err;
    EXPECT_EQ(with.out, without.out);
    EXPECT_TRUE(with.out.contains(" nodes, status 0\n")) << with.out;
    return with;
  }
  // The graphs of the two structures; what is recorded is what other_llama.cpp evaluates.
  std::vector<std::shared_ptr<const GraphTemplate>> expect_graphs(Timing known) {
    std::vector<std::shared_ptr<const GraphTemplate>> graphs;
    EXPECT_EQ(sessions().size(), 1U);
    if (sessions().empty()) return graphs;
    expect_valid(sessions()[0]);
    const SessionReader reader = open(sessions()[0]);
    EXPECT_EQ(*reader.losses(), LossCounters{});
    EXPECT_EQ(reader.info()->fact("attach.program"), "other_program");
    EXPECT_EQ(reader.step_count(), std::uint32_t{kSteps});
    std::int32_t token = 100;
    for (const Token& one : *reader.tokens(0, 100)) EXPECT_EQ(one.id, token++);
    EXPECT_EQ(token, 100 + 4 + kSteps - 1);
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      SCOPED_TRACE(i);
      const Step step = *reader.step(StepId{i});
      EXPECT_EQ(step.n_tokens, i == 0 ? 4U : 1U);
      EXPECT_TRUE(step.timing == known || i < 2) << to_text(step.timing);
      const auto graph = *reader.graph(step.graph);
      EXPECT_EQ(step.op_ends.size(), graph->ops.size());
      EXPECT_TRUE(std::ranges::is_sorted(step.op_ends));
      expect_nodes(*graph, step.n_tokens);
      if (i < 2) graphs.push_back(graph);
    }
    return graphs;
  }
  static void expect_nodes(const GraphTemplate& graph, std::int64_t n) {
    struct Expected {
      const char *name, *op;
      std::array<std::int64_t, 4> ne;
      std::vector<std::string> sources;
    };
    const std::vector<Expected> expected = {
        {"inp_embd", "GET_ROWS", {8, n, 1, 1}, {"token_embd.weight", "inp_tokens"}},
        {"norm-0", "RMS_NORM", {8, n, 1, 1}, {"inp_embd"}},
        {"attn_norm-0", "MUL", {8, n, 1, 1}, {"norm-0", "blk.0.attn_norm.weight"}},
        {"Qcur-0", "MUL_MAT", {16, n, 1, 1}, {"blk.0.attn_q.weight", "attn_norm-0"}},
        {"Qcur-0 (reshaped)", "RESHAPE", {4, 4 * n, 1, 1}, {"Qcur-0"}},
        {"Qcur-0 (view)", "VIEW", {8, 1, 1, 1}, {"Qcur-0 (reshaped)"}},
        {"result_output", "ADD", {8, 1, 1, 1}, {"Qcur-0 (view)", "Qcur-0 (view)"}}};
    ASSERT_EQ(graph.nodes.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(expected[i].name);
      const Node& node = graph.nodes[i];
      const Tensor& output = graph.tensor(node.output);
      EXPECT_EQ(output.name, expected[i].name);
      EXPECT_EQ(node.op, expected[i].op);
      EXPECT_EQ(output.ne, expected[i].ne);
      std::vector<std::string> sources;
      for (const TensorId source : node.src) sources.push_back(graph.tensor(source).name);
      EXPECT_EQ(sources, expected[i].sources);
    }
    const Tensor& view = graph.tensor(graph.nodes[5].output);
    EXPECT_EQ(view.view_offset, 16U);
    EXPECT_EQ(graph.tensor(graph.root(graph.nodes[5].output)).name, "Qcur-0");
    EXPECT_EQ(graph.tensor(graph.nodes[0].src[0]).kind, TensorKind::Weight);
  }
};

TEST_F(OtherVersions, OffsetsAreFoundWithEachRuleOfTicks) {
  for (const char* ticks : {"node", "op", "fused"}) {
    SCOPED_TRACE(ticks);
    std::vector<std::shared_ptr<const GraphTemplate>> known;
    for (const char* name : {"libother_ggml", "libother_ggml_shuffled"}) {
      SCOPED_TRACE(name);
      const Result result = record(name, std::format("OTHER_GGML_TICKS={}", ticks));
      EXPECT_FALSE(result.err.contains("tt attach: ")) << result.err;
      const auto graphs = expect_graphs(Timing::Fast);
      ASSERT_EQ(graphs.size(), 2U);
      EXPECT_EQ(graphs[1]->ops.size(), std::string_view(ticks) == "fused" ? 4U : 5U);
      if (known.empty()) known = graphs;
      for (std::size_t i = 0; i < graphs.size(); ++i) EXPECT_TRUE(*graphs[i] == *known[i]);
    }
  }
}

// Each op is a part of the graph of its own: its end is known without a tick.
TEST_F(OtherVersions, ExactTimingIsSaidWhereOpsAreNotReported) {
  for (const char* ticks : {"none", "twice"}) {
    SCOPED_TRACE(ticks);
    const Result result =
        record("libother_ggml_shuffled", std::format("OTHER_GGML_TICKS={}", ticks));
    EXPECT_TRUE(
        result.err.contains("tt attach: ggml of unknown version does not report each op; "
                            "using exact timing (slower).\n"))
        << result.err;
    const auto graphs = expect_graphs(Timing::Exact);
    ASSERT_EQ(graphs.size(), 2U);
    EXPECT_EQ(graphs[1]->ops.size(), 5U);
  }
}

TEST_F(OtherVersions, FieldThatIsNotUnderstoodIsNamedAndNothingIsRecorded) {
  for (const char* field : {"size", "type", "ne", "nb", "name", "src", "op_params", "view_src",
                            "view_offs", "op", "flags", "buffer", "data"}) {
    SCOPED_TRACE(field);
    const std::string name = "libother_ggml_shuffled";
    const Result result = record(name, std::format("OTHER_GGML_FAULT={}", field));
    EXPECT_TRUE(result.err.contains(
        std::format("tt attach: ggml of unknown version ({}) is not understood: cannot locate "
                    "ggml_tensor::{}. The program runs untraced.\n",
                    library(name), field)))
        << result.err;
    EXPECT_TRUE(sessions().empty());
  }
}

}  // namespace
}  // namespace tt
