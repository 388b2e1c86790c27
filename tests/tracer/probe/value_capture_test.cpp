// Captured values, compared with what llama.cpp's own llama-eval-callback prints for the same file,
// and what of a request is captured.
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <format>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/eval_callback.h"
#include "tests/support/models/traced_model.h"
#include "tracer/format/model/captured_kinds.h"
#include "tracer/probe/value_capture.h"
#include "tracer/request/request_bounds.h"

namespace tt::test {
namespace {

std::vector<StepValues> values_of(const TracedModel::Run& run) {
  std::vector<StepValues> all;
  const auto read = run.reader().for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    all.push_back(of);
    return true;
  });
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return all;
}

const Node& last_node(const GraphTemplate& graph, OpId op) {
  return graph.node(graph.op(op).last());
}

const std::string& name_of(const GraphTemplate& graph, OpId op) {
  return graph.tensor(last_node(graph, op).output).name;
}

std::uint64_t computed_nodes(const GraphTemplate& graph) {
  std::uint64_t count = 0;
  for (const Op& op : graph.ops) count += op.nodes;
  return count;
}

GenerationRequest capturing(GenerationRequest request, std::vector<std::string> capture) {
  request.reuse_prefix = false;
  request.capture = std::move(capture);
  return request;
}

// ---------------------------------------------------------------- what the values are

// The elements that llama-eval-callback prints, in its order.
std::vector<float> printed_elements(const OutputValues& output) {
  constexpr std::uint64_t kEdge = 3;
  const auto places = [](std::uint64_t n) {
    std::vector<std::uint64_t> at;
    for (std::uint64_t i = 0; i < n; ++i)
      if (n <= 2 * kEdge || i < kEdge || i >= n - kEdge) at.push_back(i);
    return at;
  };
  const auto& ne = output.ne;
  std::vector<float> elements;
  for (const std::uint64_t i3 : places(ne[3]))
    for (const std::uint64_t i2 : places(ne[2]))
      for (const std::uint64_t i1 : places(ne[1]))
        for (const std::uint64_t i0 : places(ne[0]))
          elements.push_back(output.values[((i3 * ne[2] + i2) * ne[1] + i1) * ne[0] + i0]);
  return elements;
}

void expect_equal(const OutputValues& ours, const EvalCallbackRun::Values& theirs) {
  constexpr float kPrinted = 0.00005001F, kRounding = 2e-7F;  // four decimals; of a float
  const std::vector<float> elements = printed_elements(ours);
  ASSERT_EQ(elements.size(), theirs.printed.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!std::isfinite(elements[i]) || !std::isfinite(theirs.printed[i])) {
      ASSERT_EQ(std::isnan(elements[i]), std::isnan(theirs.printed[i])) << i;
      ASSERT_TRUE(std::isnan(elements[i]) || elements[i] == theirs.printed[i]) << i;
      continue;
    }
    ASSERT_NEAR(elements[i], theirs.printed[i], kPrinted + kRounding * std::abs(elements[i])) << i;
  }
  double sum = 0, magnitude = 0;
  for (const float value : ours.values) {
    sum += double{value};
    magnitude += std::abs(double{value});
  }
  if (!std::isfinite(sum)) return;  // masks contain infinity
  EXPECT_NEAR(sum, theirs.sum, 1e-6 + 1e-5 * magnitude);
}

class CapturedValues : public ::testing::TestWithParam<const char*> {};

std::filesystem::path model_of(const std::string& name) {
  return is_arch_model(name) ? arch_model_with_letters(name) : generated_model({.shape = name});
}

TEST_P(CapturedValues, AreThoseOfEvalCallback) {
  const auto model = model_of(GetParam());
  TracedModel traced(model);
  const std::string text = "the old sea and the wind";
  const EvalCallbackRun theirs = run_eval_callback(model, text, TracedModel::small_context());
  GenerationRequest request = capturing(text_request(text, 1), {".*"});
  const auto learned = traced.run(request), known = traced.run(request);
  request.exact_timing = true;
  const auto exact = traced.run(request);
  const std::pair<const char*, const TracedModel::Run&> runs[] = {
      {"learned", learned}, {"known", known}, {"exact", exact}};
  for (const auto& [how, run] : runs) {
    SCOPED_TRACE(how);
    const auto values = values_of(run);
    ASSERT_EQ(values.size(), 1U) << run.result.error;
    const auto graph = graph_of(run.reader(), run.steps().front());
    ASSERT_EQ(graph->nodes.size(), theirs.nodes.size());
    for (const OutputValues& output : values[0].outputs) {
      SCOPED_TRACE(std::format("op {}, {} {}", output.op.v, last_node(*graph, output.op).op,
                               name_of(*graph, output.op)));
      ASSERT_TRUE(std::ranges::equal(output.ne,
                                     graph->tensor(last_node(*graph, output.op).output).ne,
                                     std::equal_to<std::int64_t>()));
      expect_equal(output, theirs.values[graph->op(output.op).last().v]);
      if (::testing::Test::HasFailure()) return;
    }
    // Every node is captured or counted. Only first nodes of fused pairs have no output.
    const std::uint64_t nodes = computed_nodes(*graph);
    EXPECT_EQ(values[0].outputs.size() + values[0].not_captured, nodes);
    std::printf("%s, %s: %zu ops captured, %llu of %llu nodes not\n", GetParam(), how,
                values[0].outputs.size(), static_cast<unsigned long long>(values[0].not_captured),
                static_cast<unsigned long long>(nodes));
    // While a graph is learned, a norm is not cut from the node after it, which may be fused with
    // it.
    std::set<std::uint32_t> missing;
    for (std::uint32_t op = 0; op < graph->ops.size(); ++op) missing.insert(op);
    for (const OutputValues& output : values[0].outputs) missing.erase(output.op.v);
    EXPECT_TRUE(missing.empty() || how == std::string("learned"));
    for (const std::uint32_t op : missing)
      EXPECT_EQ(last_node(*graph, OpId{op}).op, "RMS_NORM") << op;
    EXPECT_TRUE(check_session(run.file).value().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CapturedValues,
                         ::testing::Values("small", "moe", "qwen3-moe-like", "gpt-oss-like",
                                           "deepseek-like", "mamba", "rwkv", "jamba-dense",
                                           "falcon-h1-dense", "qwen3next-moe"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// What an op reads is what another op has put out before, also if the op writes its output to the
// same memory. Everything else that it reads (weights, caches, inputs) is no output of an op.
TEST_P(CapturedValues, SourcesAreTheOutputsThatEvalCallbackPrints) {
  const auto model = model_of(GetParam());
  TracedModel traced(model);
  const std::string text = "the old sea and the wind";
  const EvalCallbackRun theirs = run_eval_callback(model, text, TracedModel::small_context());
  GenerationRequest request =
      capturing(text_request(text, 1), {"_moe_|norm|attn|ffn|_out|kq|cur@L0-1@I0-"});
  const auto learned = traced.run(request), known = traced.run(request);
  request.exact_timing = true;
  const auto exact = traced.run(request);
  std::vector<std::size_t> compared;
  for (const TracedModel::Run* run : {&learned, &known, &exact}) {
    const auto values = values_of(*run);
    ASSERT_EQ(values.size(), 1U) << run->result.error;
    const auto graph = graph_of(run->reader(), run->steps().front());
    std::map<TensorId, std::uint32_t> writers;  // by the output
    std::size_t count = 0;
    for (std::uint32_t node = 0; node < graph->nodes.size(); ++node)
      writers[graph->node(NodeId{node}).output] = node;
    for (const OutputValues& source : values[0].outputs) {
      ASSERT_TRUE(is_source(source.of));
      const Node& first = graph->node(graph->op(source.op).first);
      const TensorId tensor = first.src.at(source_of(source.of));
      SCOPED_TRACE(std::format("op {}, {} of {}", source.op.v, graph->tensor(tensor).name,
                               name_of(*graph, source.op)));
      ASSERT_TRUE(
          std::ranges::equal(source.ne, graph->tensor(tensor).ne, std::equal_to<std::int64_t>()));
      const auto writer = writers.find(tensor);
      // A view of a cache is printed before other ops write to the cache.
      if (writer == writers.end() || graph->tensor(graph->root(tensor)).kind == TensorKind::Kv)
        continue;
      expect_equal(source, theirs.values.at(writer->second));
      if (::testing::Test::HasFailure()) return;
      ++count;
    }
    compared.push_back(count);
    EXPECT_TRUE(check_session(run->file).value().empty());
  }
  EXPECT_GE(compared[0], 6U) << "mamba has the fewest";
  // A graph that is learned is not split between a norm and its weight.
  EXPECT_EQ(compared[1], compared[2]);
  EXPECT_GE(compared[1], compared[0]);
}

// ---------------------------------------------------------------- what is captured

// By step, the names of the captured outputs.
std::map<std::uint32_t, std::set<std::string>> names_in(const TracedModel::Run& run) {
  std::map<std::uint32_t, std::set<std::string>> names;
  const auto steps = run.steps();
  for (const StepValues& of : values_of(run)) {
    const auto graph = graph_of(run.reader(), steps.at(of.step.v));
    EXPECT_EQ(of.not_captured, 0U);
    for (const OutputValues& output : of.outputs)
      names[of.step.v].insert(name_of(*graph, output.op));
  }
  return names;
}

using Names = std::map<std::uint32_t, std::set<std::string>>;

TEST(ValueCapture, TakesTheLayersTokensAndStepsOfEachRule) {
  TracedModel traced(generated_model({.shape = "small"}));
  const auto captured = [&](std::vector<std::string> capture) {
    return names_in(traced.run(capturing(greedy_tokens(20, 4), std::move(capture))));
  };
  // Steps 0 (tokens 0 to 19), 1, 2 and 3 (tokens 20 to 22).
  EXPECT_EQ(captured({"^l_out@L2-3@S1"}), (Names{{1, {"l_out-2", "l_out-3"}}}));
  EXPECT_EQ(captured({"^l_out@L10-@S1-2"}),
            (Names{{1, {"l_out-10", "l_out-11"}}, {2, {"l_out-10", "l_out-11"}}}));
  EXPECT_EQ(captured({"^result_output@T21-"}),
            (Names{{2, {"result_output"}}, {3, {"result_output"}}}));
  EXPECT_EQ(captured({"^result_output@T19"}), (Names{{0, {"result_output"}}}));
  EXPECT_EQ(captured({"^result_output@S3", "^l_out@L0@S2-3"}),
            (Names{{2, {"l_out-0"}}, {3, {"l_out-0", "result_output"}}}));
  EXPECT_EQ(captured({"^result_output@L0"}), Names{}) << "it belongs to no layer";
  EXPECT_EQ(captured({"nothing has this name"}), Names{});
}

TEST(ValueCapture, ChangesNeitherTokensNorOps) {
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = greedy_tokens(20, 6);
  request.reuse_prefix = false;
  const auto learned = traced.run(request), plain = traced.run(request);
  EXPECT_TRUE(values_of(plain).empty());
  const auto captured = traced.run(capturing(request, {"l_out|ffn_out"}));
  EXPECT_EQ(captured.captured.tokens, plain.captured.tokens);
  ASSERT_EQ(captured.steps().size(), plain.steps().size());
  for (std::size_t i = 0; i < plain.steps().size(); ++i) {
    const Step a = plain.steps()[i], b = captured.steps()[i];
    EXPECT_EQ(*graph_of(plain.reader(), a), *graph_of(captured.reader(), b));
    EXPECT_EQ(a.op_ends.size(), b.op_ends.size());
    EXPECT_EQ(a.slots, b.slots);
    EXPECT_EQ(b.timing, Timing::Fast);
  }
  EXPECT_EQ(captured.recording.losses, LossCounters{});
  const auto fact = std::ranges::find(captured.info.facts, std::string("request.capture.0"),
                                      &std::pair<std::string, std::string>::first);
  ASSERT_NE(fact, captured.info.facts.end());
  EXPECT_EQ(fact->second, "l_out|ffn_out");
}

// The form changes what is stored, not what is computed.
TEST(ValueCapture, StoresRowsLargestValuesAndHalves) {
  TracedModel traced(generated_model({.shape = "small"}));
  const auto first_of = [&](const std::string& rule, std::uint64_t bytes = 1U << 20) {
    GenerationRequest request = capturing(greedy_tokens(20, 2), {rule});
    request.capture_bytes = bytes;
    const auto values = values_of(traced.run(request));
    EXPECT_EQ(values.at(0).outputs.size(), 1U) << rule;
    return values.at(0).outputs.at(0);
  };
  const OutputValues whole = first_of("^l_out@L2@S0");
  const std::size_t width = whole.ne[0];
  ASSERT_EQ(whole.ne, (std::array<std::uint64_t, 4>{width, 20, 1, 1}));

  const OutputValues rows = first_of("^l_out@L2@S0@R3");
  EXPECT_EQ(rows.of, ValuesOf::Output);
  EXPECT_EQ(rows.ne, (std::array<std::uint64_t, 4>{width, 3, 1, 1}));
  EXPECT_TRUE(std::ranges::equal(rows.values, std::span(whole.values).last(3 * width)));
  EXPECT_EQ(first_of("^l_out@L2@S0@R20"), whole);
  EXPECT_EQ(first_of("^l_out@L2@S0@R4000000000"), whole);

  const OutputValues halves = first_of("^l_out@L2@S0@F16");
  ASSERT_EQ(halves.ne, whole.ne);
  for (std::size_t i = 0; i < whole.values.size(); ++i) {
    const float value = whole.values[i];
    ASSERT_NEAR(halves.values[i], value, std::abs(value) / 2048 + 0x1p-25F);
    ASSERT_EQ(halves.values[i], ggml_fp16_to_fp32(ggml_fp32_to_fp16(halves.values[i])));
  }
  // Two bytes per value: both steps fit into the bytes of one and a half as f32.
  GenerationRequest request = capturing(greedy_tokens(20, 2), {"^l_out@L2@F16"});
  request.capture_bytes = 21 * width * 2;
  const auto both = values_of(traced.run(request));
  EXPECT_EQ(both.at(0).not_captured + both.at(1).not_captured, 0U);

  constexpr std::size_t kTop = 5;
  const OutputValues top = first_of("^l_out@L2@S0@K5@R2");
  EXPECT_EQ(top.of, top_of(ValuesOf::Output));
  ASSERT_EQ(top.ne, (std::array<std::uint64_t, 4>{kTop, 2, 2, 1}));
  for (std::size_t row = 0; row < 2; ++row) {
    const auto all = std::span(whole.values).subspan((18 + row) * width, width);
    std::vector<std::size_t> columns(width);
    for (std::size_t i = 0; i < width; ++i) columns[i] = i;
    std::ranges::stable_sort(columns, std::ranges::greater(),
                             [&](std::size_t i) { return std::abs(all[i]); });
    for (std::size_t i = 0; i < kTop; ++i) {
      EXPECT_EQ(top.values[2 * kTop * row + i], static_cast<float>(columns[i]));
      EXPECT_EQ(top.values[2 * kTop * row + kTop + i], all[columns[i]]);
    }
  }
  // The first rule decides.
  const auto two =
      values_of(traced.run(capturing(greedy_tokens(20, 2), {"^l_out@L2@S0@R1", "^l_out@L2-3@S0"})));
  ASSERT_EQ(two.at(0).outputs.size(), 2U);
  EXPECT_EQ(two[0].outputs[0].ne[1], 1U);
  EXPECT_EQ(two[0].outputs[1].ne[1], 20U);
}

// A budget of two outputs and a half.
TEST(ValueCapture, CountsWhatDoesNotFitIntoTheBudget) {
  TracedModel traced(generated_model({.shape = "small"}));
  GenerationRequest request = capturing(greedy_tokens(4, 4), {"^l_out@L0@S1-"});
  const auto all = values_of(traced.run(request));
  ASSERT_EQ(all.size(), 3U);
  const std::uint64_t bytes = all[0].outputs.at(0).values.size() * sizeof(float);
  request.capture_bytes = bytes * 5 / 2;
  const auto run = traced.run(request);
  const auto some = values_of(run);
  ASSERT_EQ(some.size(), 3U);
  EXPECT_EQ(some[0], all[0]);
  EXPECT_EQ(some[1], all[1]);
  EXPECT_EQ(some[2], (StepValues{.step = StepId{3}, .not_captured = 1, .outputs = {}}));
  EXPECT_TRUE(check_session(run.file).value().empty());
  request.capture_bytes = 0;
  const auto none = values_of(traced.run(request));
  ASSERT_EQ(none.size(), 3U);
  for (const StepValues& of : none) EXPECT_TRUE(of.outputs.empty() && of.not_captured == 1);
}

// Of a fused pair only the second node has an output in memory.
TEST(ValueCapture, CountsFirstNodesOfFusedPairs) {
  TracedModel traced(two_layer_model("small"));
  for (int i = 0; i < 2; ++i) {  // learned, then known
    const auto run = traced.run(capturing(greedy_tokens(9, 2), {"^norm-0$"}));
    for (const Step& step : run.steps()) {
      const auto graph = graph_of(run.reader(), step);
      std::uint64_t hidden = 0, visible = 0;
      for (const Op& op : graph->ops)
        for (NodeId node = op.first; node.v <= op.last().v; ++node.v)
          if (graph->tensor(graph->node(node).output).name == "norm-0")
            ++(node.v == op.last().v ? visible : hidden);
      EXPECT_GT(hidden, 0U);
      const auto values = values_of(run);
      ASSERT_EQ(values.size(), run.steps().size());
      EXPECT_EQ(values[step.id.v].not_captured, hidden);
      EXPECT_EQ(values[step.id.v].outputs.size(), visible);
    }
  }
}

// More than what may wait for the disk: the run waits instead of losing steps.
TEST(ValueCapture, LosesNoStepWhenMuchIsCaptured) {
  TracedModel traced(generated_model({.shape = "small"}));
  GenerationRequest request = capturing(greedy_tokens(40, 30), {".*"});
  request.capture_bytes = 300U << 20;
  const auto run = traced.run(request);
  EXPECT_EQ(run.recording.losses, LossCounters{});
  std::size_t bytes = 0;
  for (const StepValues& of : values_of(run))
    for (const OutputValues& output : of.outputs) bytes += output.values.size() * sizeof(float);
  std::printf("%zu steps, %zu MiB of values, a file of %ju MiB\n", run.steps().size(), bytes >> 20,
              std::filesystem::file_size(run.file) >> 20);
  EXPECT_GT(bytes, std::size_t{2} * Recorder::kMaxWaitingBytes);
  for (const Step& step : run.steps()) EXPECT_FALSE(step.dropped);
}

// ---------------------------------------------------------------- requests

TEST(ValueCapture, RejectsWhatIsNotARule) {
  TracedModel traced(two_layer_model("small"));
  const auto says = [&](std::vector<std::string> capture, Level level = Level::Detailed) {
    GenerationRequest request = capturing(greedy_tokens(3, 1), std::move(capture));
    request.level = level;
    const auto checked = traced.engine().check(request);
    if (checked) return std::string();
    EXPECT_EQ(checked.error().kind, EngineError::Kind::BadOption);
    const auto run = traced.run(request);
    EXPECT_EQ(run.result.reason, StopReason::Error);
    EXPECT_EQ(run.result.error, checked.error().message);
    return checked.error().message;
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "needs a pattern"},
      {"@L1", "needs a pattern"},
      {"(", "not a valid regular expression"},
      {"(a)\\1", "back reference"},
      {"(?=a)", "lookahead"},
      {std::string(100'000, '('), "the maximum is 1000"},
      {"((a{500}){500}){500}", "too long"},
      {"a@", "not a range"},
      {"a@L", "not a range"},
      {"a@l1", "not a range"},
      {"a@X1", "not a range"},
      {"a@L-1", "not a range"},
      {"a@L3-1", "not a range"},
      {"a@L1-2-3", "not a range"},
      {"a@L 1", "not a range"},
      {"a@L+1", "not a range"},
      {"a@S4294967296", "not a range"},
      {"a@L1@L2", "@L twice"},
      {"a@I", "not a range"},
      {"a@I-1", "not a range"},
      {"a@R0", "not a range or a form"},
      {"a@R1-2", "not a range or a form"},
      {"a@R1-", "not a range or a form"},
      {"a@K0", "not a range or a form"},
      {"a@K1025", "at most 1024"},
      {"a@F", "not a range or a form"},
      {"a@F32", "not a range or a form"},
      {"a@F16@F16", "@F twice"},
      {"a@K4@F16", "only one of them"},
      {"lens@K4", "lens can have @L, @T and @S only"},
      {"attention@L0@I1", "has @I; attention can have"},
      {std::string("a@L1\0", 5), "not a range"},
  };
  for (const auto& [capture, expected] : cases)
    EXPECT_TRUE(says({capture}).contains(expected))
        << capture.substr(0, 40) << ": " << says({capture}).substr(0, 300);
  EXPECT_TRUE(says(std::vector<std::string>(kMaxCaptures + 1, "a")).contains("at most 8"));
  EXPECT_TRUE(says({"a"}, Level::Minimal).contains("not at level minimal"));
  EXPECT_TRUE(says({"a"}, Level::Off).contains("not at level off"));
  EXPECT_EQ(says({"(.*)*!", "[^a]*@L0-@T0-4294967295@S7"}), "");
}

}  // namespace
}  // namespace tt::test
