// Recording levels, chosen per session, and the correctness of what each records.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <format>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/support/models/plain_llama.h"
#include "tests/support/models/traced_model.h"
#include "tracer/probe/value_stats.h"

namespace tt::test {
namespace {

TEST(Levels, OffRecordsNothing) {
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = greedy_tokens(9, 4);
  request.level = Level::Off;
  const auto run = traced.run(request);
  EXPECT_TRUE(run.file.empty());
  EXPECT_EQ(run.result.generated, 4U);
  EXPECT_EQ(traced.engine().probe().memory_bytes(), 0U) << "no graph was learned";
}

TEST(Levels, MinimalKeepsStepsAndTokens) {
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = greedy_tokens(9, 4);
  request.level = Level::Minimal;
  const auto run = traced.run(request);
  const auto reader = run.reader();
  EXPECT_TRUE(reader.template_ids()->empty());
  EXPECT_EQ(*reader.token_count(), 13U);
  const auto steps = run.steps();
  ASSERT_EQ(steps.size(), 4U);
  for (const Step& step : steps) {
    EXPECT_EQ(step.timing, Timing::None);
    EXPECT_FALSE(step.dropped) << "not dropped: not requested";
    EXPECT_TRUE(step.op_ends.empty());
    EXPECT_LT(step.begin, step.end);
  }
  EXPECT_EQ(run.recording.losses, LossCounters{});
  EXPECT_TRUE(check_session(run.file).value().empty());
}

TEST(Levels, EveryLevelGeneratesSameOutput) {
  TracedModel traced(two_layer_model("small"));
  std::vector<std::vector<Token>> tokens;
  for (const Level level : {Level::Off, Level::Minimal, Level::Detailed, Level::Verbose}) {
    GenerationRequest request = greedy_tokens(30, 12);
    request.level = level;
    request.stats_pattern = "ffn_out|attn_out";
    tokens.push_back(traced.run(request).captured.tokens);
    EXPECT_EQ(tokens.back(), tokens.front());
  }
}

TEST(Levels, ExactTimingRecordsSameOps) {
  for (const char* shape : {"small", "gpt-oss-like", "mamba"}) {
    SCOPED_TRACE(shape);
    TracedModel traced(two_layer_model(shape));
    GenerationRequest request = greedy_tokens(20, 5);
    const auto learned = traced.run(request);
    const auto fast = traced.run(request);
    request.exact_timing = true;
    const auto exact = traced.run(request);
    for (std::size_t i = 0; i < 5; ++i) {
      const Step a = fast.steps().at(i);
      const Step b = exact.steps().at(i);
      EXPECT_EQ(a.timing, Timing::Fast);
      EXPECT_EQ(b.timing, Timing::Exact);
      const auto graph = graph_of(fast.reader(), a);
      EXPECT_EQ(*graph, *graph_of(exact.reader(), b));
      EXPECT_EQ(*graph, *graph_of(learned.reader(), learned.steps().at(i)));
      EXPECT_EQ(a.op_ends.size(), graph->ops.size());
      EXPECT_EQ(b.op_ends.size(), graph->ops.size());
      EXPECT_EQ(a.slots, b.slots);
      for (const Step& step : {a, b}) {
        EXPECT_LE(step.begin, step.first_op);
        EXPECT_LE(step.first_op, step.op_ends.front());
        EXPECT_TRUE(std::ranges::is_sorted(step.op_ends));
        EXPECT_LE(step.op_ends.back(), step.end);
      }
    }
    EXPECT_EQ(fast.captured.tokens, exact.captured.tokens);
    EXPECT_TRUE(exact.info.exact_timing);
  }
}

// ---------------------------------------------------------------- VERBOSE

// Textbook formulas, in double precision, in two passes.
ValueStats naive_stats(const std::vector<float>& values) {
  ValueStats stats;
  std::vector<double> finite;
  for (const float value : values) {
    if (std::isnan(value)) {
      ++stats.nan;
    } else if (std::isinf(value)) {
      ++stats.inf;
    } else {
      finite.push_back(double{value});
    }
  }
  if (finite.empty()) return stats;
  double sum = 0;
  for (const double value : finite) sum += value;
  const double mean = sum / static_cast<double>(finite.size());
  double squares = 0;
  for (const double value : finite) squares += (value - mean) * (value - mean);
  stats.min = static_cast<float>(*std::ranges::min_element(finite));
  stats.max = static_cast<float>(*std::ranges::max_element(finite));
  stats.mean = static_cast<float>(mean);
  stats.std = static_cast<float>(std::sqrt(squares / static_cast<double>(finite.size())));
  return stats;
}

void expect_close(const ValueStats& ours, const ValueStats& theirs) {
  const float tolerance = 1e-5F * (1 + std::abs(theirs.mean) + theirs.std);
  EXPECT_EQ(ours.min, theirs.min);
  EXPECT_EQ(ours.max, theirs.max);
  EXPECT_NEAR(ours.mean, theirs.mean, tolerance);
  EXPECT_NEAR(ours.std, theirs.std, tolerance);
  EXPECT_EQ(ours.nan, theirs.nan);
  EXPECT_EQ(ours.inf, theirs.inf);
}

TEST(Levels, VerboseRecordsStatsOfOutputsMatchingPattern) {
  constexpr const char* kPattern = "^(ffn_out|ffn_norm|l_out|norm|result_output)(-[0-9]+)?$";
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = greedy_tokens(20, 4);
  request.level = Level::Verbose;
  request.stats_pattern = kPattern;
  const auto learned = traced.run(request);
  const auto fast = traced.run(request);
  request.exact_timing = true;
  const auto exact = traced.run(request);

  // The same outputs, read by a callback of this test. Of a fused RMS_NORM and MUL only the
  // final output exists: "norm-0" is not an output.
  const std::regex pattern(kPattern);
  std::vector<std::pair<std::string, ValueStats>> theirs;
  PlainLlama plain(two_layer_model("small"), TracedModel::small_context(),
                   [&](const ggml_tensor& node, bool ask) {
                     if (!std::regex_match(node.name, pattern) ||
                         std::string_view(node.name).starts_with("norm")) {
                       return !ask;
                     }
                     if (!ask) theirs.emplace_back(node.name, naive_stats(floats_of(node)));
                     return true;
                   });
  std::vector<std::int32_t> next = std::get<std::vector<std::int32_t>>(request.prompt);
  for (std::size_t i = 0; i < 4; ++i) {
    theirs.clear();
    next = {plain.decode(next)};
    EXPECT_GT(theirs.size(), 3U * 2);
    for (const auto* run : {&learned, &fast, &exact}) {
      const Step step = run->steps().at(i);
      SCOPED_TRACE(std::format("step {}, {}", i, to_text(step.timing)));
      const auto graph = graph_of(run->reader(), step);
      ASSERT_EQ(step.stats.size(), theirs.size());
      for (std::size_t s = 0; s < theirs.size(); ++s) {
        const Node& node = graph->node(graph->op(step.stats[s].op).last());
        EXPECT_EQ(graph->tensor(node.output).name, theirs[s].first);
        expect_close(step.stats[s], theirs[s].second);
      }
    }
  }
}

// Also if the request's graphs are known from its first step on.
TEST(Levels, VerboseUsesPatternOfEachRequest) {
  TracedModel traced(generated_model({.shape = "small"}));
  GenerationRequest request = greedy_tokens(20, 4);
  request.reuse_prefix = true;
  request.level = Level::Verbose;
  for (const std::string name : {"ffn_out", "l_out", "ffn_out"}) {
    SCOPED_TRACE(name);
    request.stats_pattern = "^" + name;
    const auto run = traced.run(request);
    for (const Step& step : run.steps()) {
      const auto graph = graph_of(run.reader(), step);
      EXPECT_GE(step.stats.size(), 11U) << "one per layer of 12; the last computes one token only";
      for (const ValueStats& stats : step.stats) {
        const Node& node = graph->node(graph->op(stats.op).last());
        EXPECT_TRUE(graph->tensor(node.output).name.starts_with(name))
            << graph->tensor(node.output).name;
      }
    }
  }
}

// Without a pattern: the output of each layer, and the logits.
TEST(Levels, VerboseWithoutPatternRecordsEveryLayer) {
  for (const char* shape : {"small", "moe", "mamba", "rwkv"}) {
    SCOPED_TRACE(shape);
    TracedModel traced(two_layer_model(shape));
    GenerationRequest request = greedy_tokens(9, 2);
    request.level = Level::Verbose;
    const auto run = traced.run(request);
    for (const Step& step : run.steps()) {
      const auto graph = graph_of(run.reader(), step);
      std::set<std::int32_t> layers;
      bool logits = false;
      for (const ValueStats& stats : step.stats) {
        layers.insert(graph->op(stats.op).layer.v);
        logits |=
            graph->tensor(graph->node(graph->op(stats.op).last()).output).name == "result_output";
      }
      EXPECT_TRUE(layers.contains(0) && layers.contains(1)) << layers.size();
      EXPECT_TRUE(logits);
    }
  }
}

TEST(Levels, RejectsInvalidPattern) {
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = greedy_tokens(3, 2);
  request.stats_pattern = "(unclosed";
  const auto checked = traced.engine().check(request);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, EngineError::Kind::BadOption);
}

// ---------------------------------------------------------------- value_stats itself

class StatsTensor {
 public:
  StatsTensor(ggml_type type, std::int64_t ne0, std::int64_t ne1)
      : context_(ggml_init({.mem_size = 1U << 20, .mem_buffer = nullptr, .no_alloc = true})),
        tensor(ggml_new_tensor_2d(context_.get(), type, ne0, ne1)) {
    ensure_backends_loaded();
    backend_ = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    buffer_ = ggml_backend_alloc_ctx_tensors(context_.get(), backend_);
  }
  ~StatsTensor() {
    ggml_backend_buffer_free(buffer_);
    ggml_backend_free(backend_);
  }
  StatsTensor(const StatsTensor&) = delete;
  StatsTensor& operator=(const StatsTensor&) = delete;

 private:
  GgmlContext context_;
  ggml_backend_t backend_ = nullptr;
  ggml_backend_buffer_t buffer_ = nullptr;

 public:
  ggml_tensor* tensor;
};

TEST(ValueStats, CountsNanAndInf) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const StatsTensor f32(GGML_TYPE_F32, 4, 2);
  const std::vector<float> values = {1, kNan, -3, kInf, 1e6F, -kInf, kNan, 2};
  ggml_backend_tensor_set(f32.tensor, values.data(), 0, values.size() * sizeof(float));
  std::vector<std::byte> scratch;
  const auto stats = value_stats(*f32.tensor, scratch);
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->nan, 2U);
  EXPECT_EQ(stats->inf, 2U);
  expect_close(*stats, naive_stats(values));

  const std::vector<float> none(8, kNan);
  ggml_backend_tensor_set(f32.tensor, none.data(), 0, none.size() * sizeof(float));
  expect_close(*value_stats(*f32.tensor, scratch), naive_stats(none));
}

TEST(ValueStats, IsAccurateFarFromZero) {
  const StatsTensor f32(GGML_TYPE_F32, 1000, 1);
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1e6F + static_cast<float>(i % 2));
  ggml_backend_tensor_set(f32.tensor, values.data(), 0, values.size() * sizeof(float));
  std::vector<std::byte> scratch;
  EXPECT_NEAR(value_stats(*f32.tensor, scratch)->std, 0.5F, 1e-3F);
}

TEST(ValueStats, ReadsTypesAndViews) {
  const StatsTensor f16(GGML_TYPE_F16, 4, 3);
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(i));
  std::vector<ggml_fp16_t> halves(values.size());
  ggml_fp32_to_fp16_row(values.data(), halves.data(), 12);
  ggml_backend_tensor_set(f16.tensor, halves.data(), 0, halves.size() * sizeof(ggml_fp16_t));
  std::vector<std::byte> scratch;
  expect_close(*value_stats(*f16.tensor, scratch), naive_stats(values));

  // Two of the four columns: rows with gaps.
  ggml_tensor view = *f16.tensor;
  view.ne[0] = 2;
  expect_close(*value_stats(view, scratch), naive_stats({0, 1, 4, 5, 8, 9}));

  const StatsTensor i32(GGML_TYPE_I32, 4, 1);
  EXPECT_FALSE(value_stats(*i32.tensor, scratch).has_value()) << "ids have no statistics";
}

}  // namespace
}  // namespace tt::test
