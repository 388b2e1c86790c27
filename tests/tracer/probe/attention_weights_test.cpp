// Attention weights that are computed beside flash attention, compared with what ggml's kernel
// computes and with llama.cpp's run without flash attention; and which tokens they belong to.
#include <ggml-backend.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <format>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/attention/captured_attention.h"
#include "analysis/report/values_difference.h"
#include "analysis/tables/value_summary.h"
#include "tests/support/models/backends.h"
#include "tests/support/models/traced_model.h"
#include "tracer/probe/attention_weights.h"

namespace tt::test {
namespace {

// ---------------------------------------------------------------- one op

struct KernelCase {
  const char* name;
  std::int64_t heads, key_heads;
  float max_bias, soft_cap;
  bool sinks;
};

void set_values(ggml_tensor* tensor, const std::vector<float>& values) {
  if (tensor->type == GGML_TYPE_F32) {
    ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(float));
    return;
  }
  std::vector<ggml_fp16_t> halves(values.size());
  ggml_fp32_to_fp16_row(values.data(), halves.data(), std::ssize(values));
  ggml_backend_tensor_set(tensor, halves.data(), 0, halves.size() * sizeof(ggml_fp16_t));
}

// With the unit matrix as values, the output of the kernel is its weights.
TEST(AttentionWeights, AreThoseOfTheKernel) {
  constexpr std::int64_t kSize = 64, kKeys = 64, kQueries = 5;
  const KernelCase cases[] = {{"plain", 4, 4, 0, 0, false},
                              {"shared keys", 8, 2, 0, 0, false},
                              {"ALiBi", 12, 4, 8, 0, false},
                              {"soft cap", 4, 2, 0, 3, false},
                              {"sinks", 8, 2, 0, 0, true}};
  ensure_backends_loaded();
  for (const KernelCase& c : cases) {
    SCOPED_TRACE(c.name);
    const std::unique_ptr<ggml_backend, decltype(&ggml_backend_free)> cpu(
        ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr), &ggml_backend_free);
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> context(
        ggml_init({.mem_size = 1U << 20, .mem_buffer = nullptr, .no_alloc = true}), &ggml_free);
    ggml_context* const in = context.get();
    ggml_tensor* q = ggml_new_tensor_3d(in, GGML_TYPE_F32, kSize, kQueries, c.heads);
    ggml_tensor* k = ggml_new_tensor_3d(in, GGML_TYPE_F16, kSize, kKeys, c.key_heads);
    ggml_tensor* v = ggml_new_tensor_3d(in, GGML_TYPE_F16, kKeys, kKeys, c.key_heads);
    ggml_tensor* mask = ggml_new_tensor_2d(in, GGML_TYPE_F16, kKeys, kQueries);
    ggml_tensor* sinks = ggml_new_tensor_1d(in, GGML_TYPE_F32, c.heads);
    ggml_tensor* out = ggml_flash_attn_ext(in, q, k, v, mask, 0.125F, c.max_bias, c.soft_cap);
    if (c.sinks) ggml_flash_attn_ext_add_sinks(out, sinks);
    ggml_cgraph* graph = ggml_new_graph(in);
    ggml_build_forward_expand(graph, out);
    const std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)> buffer(
        ggml_backend_alloc_ctx_tensors(in, cpu.get()), &ggml_backend_buffer_free);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (ggml_tensor* of : {q, k, sinks}) {
      std::vector<float> values(static_cast<std::size_t>(ggml_nelements(of)));
      std::ranges::generate(values, [&] { return 1.5F * normal(random); });
      set_values(of, values);
    }
    std::vector<float> unit(static_cast<std::size_t>(ggml_nelements(v)));
    for (std::size_t i = 0; i < unit.size(); ++i)
      unit[i] = i / kKeys % kKeys == i % kKeys ? 1.0F : 0.0F;
    set_values(v, unit);
    std::vector<float> masked(static_cast<std::size_t>(ggml_nelements(mask)));
    for (std::int64_t i = 0; i < std::ssize(masked); ++i) {
      const std::int64_t distance = i % kKeys - (50 + i / kKeys);  // ALiBi multiplies it
      masked[static_cast<std::size_t>(i)] =
          distance > 0 ? -std::numeric_limits<float>::infinity()
                       : (c.max_bias > 0 ? static_cast<float>(distance) : 0.0F);
    }
    set_values(mask, masked);
    ASSERT_EQ(ggml_backend_graph_compute(cpu.get(), graph), GGML_STATUS_SUCCESS);
    std::vector<float> kernel(static_cast<std::size_t>(ggml_nelements(out)));
    ggml_backend_tensor_get(out, kernel.data(), 0, kernel.size() * sizeof(float));

    std::vector<std::byte> scratch;
    ASSERT_TRUE(has_readable_attention(*out));
    const auto shape = attention_shape(*out);
    EXPECT_EQ(shape, (std::array<std::uint64_t, 4>{kKeys, kQueries,
                                                   static_cast<std::uint64_t>(c.heads), 1}));
    const std::vector<float> weights = attention_weights(*out, scratch);
    ASSERT_EQ(weights.size(), kernel.size());
    float largest = 0;
    for (std::int64_t head = 0; head < c.heads; ++head)
      for (std::int64_t query = 0; query < kQueries; ++query)
        for (std::int64_t key = 0; key < kKeys; ++key)
          largest = std::max(
              largest,
              std::abs(weights[static_cast<std::size_t>((head * kQueries + query) * kKeys + key)] -
                       kernel[static_cast<std::size_t>((query * c.heads + head) * kKeys + key)]));
    std::printf("%s: largest difference %g\n", c.name, static_cast<double>(largest));
    EXPECT_LT(largest, 1e-3F);
  }
}

// ---------------------------------------------------------------- a run

GenerationRequest capturing(std::size_t tokens, std::uint32_t generate) {
  GenerationRequest request = greedy_tokens(tokens, generate);
  request.capture = {"attention"};
  request.reuse_prefix = true;
  return request;
}

// By step, layer, head and token.
using Weights =
    std::map<std::tuple<std::int32_t, std::uint32_t, std::uint32_t>, std::vector<float>>;
Weights weights_of(const TracedModel::Run& run) {
  Weights weights;
  const auto rows = token_attention(run.reader(), {.page = kAllRows});
  EXPECT_TRUE(rows.has_value());
  for (const TokenAttention& row : rows->rows)
    weights.emplace(std::tuple(row.layer.v, row.head, row.token), row.weights);
  EXPECT_EQ(weights.size(), rows->total);
  return weights;
}

float largest_difference(const Weights& a, const Weights& b) {
  float largest = 0;
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [of, left] : a) {
    const auto right = b.find(of);
    if (right == b.end()) return std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < std::max(left.size(), right->second.size()); ++i) {
      const auto at = [i](const std::vector<float>& list) { return i < list.size() ? list[i] : 0; };
      largest = std::max(largest, std::abs(at(left) - at(right->second)));
    }
  }
  return largest;
}

ContextOptions with(FlashAttention flash_attention, bool swa_full = false) {
  ContextOptions context = TracedModel::small_context();
  context.flash_attention = flash_attention;
  context.swa_full = swa_full;
  return context;
}

class CapturedAttention : public ::testing::TestWithParam<const char*> {};

// The prompt is longer than the window of gpt-oss-like (128) and has several steps, so that cells
// of its cache are used again.
TEST_P(CapturedAttention, IsThatOfTheRunWithoutFlashAttention) {
  const auto model = two_layer_model(GetParam());
  TracedModel flash(model, with(FlashAttention::On)), plain(model, with(FlashAttention::Off)),
      full(model, with(FlashAttention::On, true));
  const GenerationRequest request = capturing(200, 3);
  const auto learned = flash.run(request);
  const auto run = flash.run(request);  // nothing of the prompt is reused
  const Weights weights = weights_of(run);
  const TracedModel::Run without = plain.run(request);
  bool fused = false;
  for (const Op& op : graph_of(run.reader(), run.steps().front())->ops)
    fused |= graph_of(run.reader(), run.steps().front())->node(op.last()).op == "FLASH_ATTN_EXT";
  EXPECT_TRUE(fused);
  const std::size_t heads = run.info.n_heads;
  EXPECT_EQ(weights.size(), 2 * heads * 202) << run.result.error;
  const float learned_error = largest_difference(weights, weights_of(learned));
  // Both compute layer 0 from equal inputs up to the first token that differs. The inputs of later
  // layers have gone through the one or the other attention, and routers choose other experts.
  const auto ours = run.reader().tokens(0, UINT32_MAX).value(),
             theirs = without.reader().tokens(0, UINT32_MAX).value();
  const auto other = std::ranges::mismatch(ours, theirs, {}, &Token::id, &Token::id).in1;
  const auto same = static_cast<std::uint32_t>(other - ours.begin());
  const auto comparable = [&](Weights all) {
    std::erase_if(all, [&](const auto& row) {
      return std::get<0>(row.first) != 0 || std::get<2>(row.first) >= same;
    });
    return all;
  };
  const Weights first_layer = comparable(weights);
  EXPECT_GE(first_layer.size(), 200 * heads);
  const float error = largest_difference(first_layer, comparable(weights_of(without)));
  const float full_error = largest_difference(weights, weights_of(full.run(request)));
  std::printf(
      "%s: largest difference %g from the run without flash attention, %g with the whole "
      "cache\n",
      GetParam(), static_cast<double>(error), static_cast<double>(full_error));
  EXPECT_EQ(learned_error, 0);
  EXPECT_LT(error, 1e-3F);
  EXPECT_LT(full_error, 1e-5F);
  for (const auto& [of, list] : weights)
    for (std::size_t i = std::get<2>(of) + std::size_t{1}; i < list.size(); ++i)
      ASSERT_EQ(list[i], 0) << "token " << std::get<2>(of) << " looks at " << i;
  // Both have the same names, so that two runs can be compared.
  const auto compared =
      compare_values(run.reader(), without.reader(), {.page = {.limit = 1}}, never_cancel).value();
  EXPECT_EQ(compared.only_left + compared.only_right, 0U);
  ASSERT_EQ(compared.rows.size(), 1U);
  EXPECT_EQ(compared.rows.front().tensor, "attention-0");
  EXPECT_TRUE(check_session(run.file).value().empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, CapturedAttention,
                         ::testing::Values("small", "moe", "gpt-oss-like", "qwen3-moe-like",
                                           "deepseek-like"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// With weights of 16 or fewer bits, later layers of the two runs have other inputs: what the kernel
// rounds becomes larger with each product. With 32 bits it stays small, and heads share keys.
TEST(AttentionOfAllLayers, IsThatOfTheRunWithoutFlashAttention) {
  const auto model = generated_model({.shape = "small", .dims = {.layers = 4}, .quant = "f32"});
  TracedModel flash(model, with(FlashAttention::On)), plain(model, with(FlashAttention::Off));
  const auto run = flash.run(capturing(200, 1)), without = plain.run(capturing(200, 1));
  EXPECT_LT(run.info.n_heads_kv, run.info.n_heads);
  const Weights weights = weights_of(run), expected = weights_of(without);
  ASSERT_EQ(weights.size(), std::size_t{4} * run.info.n_heads * 200);
  for (std::int32_t layer = 0; layer < 4; ++layer) {
    const auto of_layer = [&](Weights all) {
      std::erase_if(all, [&](const auto& row) { return std::get<0>(row.first) != layer; });
      return all;
    };
    const float error = largest_difference(of_layer(weights), of_layer(expected));
    std::printf("layer %d: largest difference %g\n", layer, static_cast<double>(error));
    EXPECT_LT(error, 1e-3F);
    EXPECT_GT(error, 0) << "else the kernel is not another one";
  }
}

// A second, simple computation: over the weights by token.
TEST(AttentionTable, HasTheMeansOfTheWeightsByToken) {
  TracedModel traced(two_layer_model("gpt-oss-like"));
  GenerationRequest request = capturing(30, 4);
  auto& prompt = std::get<std::vector<std::int32_t>>(request.prompt);
  for (std::size_t i = 15; i < 30; ++i) prompt[i] = prompt[i - 15];
  const auto run = traced.run(request);
  const std::vector<Token> tokens = run.reader().tokens(0, UINT32_MAX).value();
  const Weights weights = weights_of(run);
  const auto table = attention_table(run.reader());
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->heads.size(), 2 * std::size_t{run.info.n_heads});
  for (const HeadAttention& head : table->heads) {
    double entropy = 0, distance = 0, first = 0, previous = 0, self = 0, sum = 0, induction = 0;
    int n = 0, repeated = 0;
    for (const auto& [of, list] : weights) {
      const auto [layer, number, token] = of;
      if (layer != head.layer.v || number != head.head || token == 0) continue;
      ++n;
      bool before = false;
      for (std::uint32_t i = 0; i <= token; ++i) {
        const double w = double{list[i]};
        sum += w;
        if (w > 0) entropy -= w * std::log2(w);
        distance += w * (token - i);
        if (i > 0 && tokens[i - 1].id == tokens[token].id) before = true, induction += w;
      }
      repeated += before ? 1 : 0;
      first += double{list[0]};
      previous += double{list[token - 1]};
      self += double{list[token]};
    }
    constexpr double kRounding = 1e-6;
    EXPECT_EQ(head.tokens, static_cast<std::uint64_t>(n));
    EXPECT_NEAR(head.entropy, entropy / n, kRounding);
    EXPECT_NEAR(head.distance, distance / n, kRounding);
    EXPECT_NEAR(head.first, first / n, kRounding);
    EXPECT_NEAR(head.previous, previous / n, kRounding);
    EXPECT_NEAR(head.self, self / n, kRounding);
    EXPECT_NEAR(head.elsewhere, 1 - sum / n, kRounding);
    EXPECT_GT(head.elsewhere, 0.001) << "gpt-oss has sinks";
    ASSERT_GT(repeated, 10);
    EXPECT_NEAR(head.induction.value(), induction / repeated, kRounding);
  }
  // Of each measure, no head has more than the named one.
  const std::map<std::string, std::function<double(const HeadAttention&)>> measures = {
      {"previous", &HeadAttention::previous},
      {"first", &HeadAttention::first},
      {"induction", [](const HeadAttention& of) { return of.induction.value(); }},
      {"entropy", &HeadAttention::entropy},
      {"distance", &HeadAttention::distance}};
  ASSERT_EQ(table->largest.size(), measures.size());
  for (const LargestHead& named : table->largest) {
    const auto& value = measures.at(named.measure);
    double most = 0, own = -1;
    for (const HeadAttention& head : table->heads) {
      most = std::max(most, value(head));
      if (head.layer == named.layer && head.head == named.head) own = value(head);
    }
    EXPECT_EQ(own, most) << named.measure;
    EXPECT_TRUE(named.text.starts_with(std::format("Layer {} head {} ", named.layer.v, named.head)))
        << named.text;
  }
}

// The decoder also looks at the encoder, whose tokens are not those of its cache.
TEST(AttentionRule, LeavesOutWhatIsNoTokenOfTheCache) {
  TracedModel traced(generated_model({.shape = "t5"}));
  const auto run = traced.run(capturing(20, 5));
  std::size_t ops = 0, decoded = 0;
  const std::vector<Step> steps = run.steps();
  const auto read = run.reader().for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    ops += of.outputs.size();
    if (steps[of.step.v].phase != Phase::Encode) decoded += of.outputs.size();
    return true;
  });
  ASSERT_TRUE(read.has_value());
  EXPECT_GT(ops, decoded);
  const Weights weights = weights_of(run);
  EXPECT_EQ(weights.size(), decoded / 2 * run.info.n_heads) << "a token per step";
  for (const auto& [of, list] : weights) {
    double sum = 0;
    for (const float weight : list) sum += double{weight};
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

TEST(AttentionRule, TakesLayersAndStepsAndNoOtherOutput) {
  for (const FlashAttention flash : {FlashAttention::On, FlashAttention::Off}) {
    TracedModel traced(generated_model({.shape = "moe"}), with(flash));
    GenerationRequest request = capturing(9, 3);
    request.capture = {"attention@L2-3@S1"};
    const auto run = traced.run(request);
    std::vector<std::string> names;
    const auto read =
        run.reader().for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
          EXPECT_EQ(of.step, StepId{1});
          EXPECT_EQ(of.not_captured, 0U);
          for (const OutputValues& values : of.outputs)
            names.push_back(value_name(*graph_of(run.reader(), run.steps()[1]), values));
          return true;
        });
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(names, (std::vector<std::string>{"attention-2", "attention-3"}))
        << "the router's SOFT_MAX is none";
    const auto rows = token_attention(
        run.reader(), {.layer = 3, .head = 1, .token = 9, .page = {.from = 0, .limit = 5}});
    ASSERT_EQ(rows->total, 1U);
    EXPECT_EQ(rows->rows[0].weights.size(), 10U);
  }
}

}  // namespace
}  // namespace tt::test
