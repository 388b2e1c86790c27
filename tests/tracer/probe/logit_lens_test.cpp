// The logit lens, compared with llama.cpp's logits of models that end after each layer, and with
// the logits of the run itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <format>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/values/logit_lens.h"
#include "tests/support/models/plain_llama.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/names/names.h"
#include "tracer/gguf/llama_handles.h"

namespace tt::test {
namespace {

GenerationRequest with_lens(std::size_t prompt, std::uint32_t generate) {
  GenerationRequest request = greedy_tokens(prompt, generate);
  request.capture = {"lens", "result_output"};
  return request;
}

std::vector<LensRow> lens_of(const TracedModel::Run& run, LensQuery query = {}) {
  query.page = kAllRows;
  auto page = logit_lens(run.reader(), query);
  EXPECT_TRUE(page.has_value()) << run.result.error;
  return page->rows;
}

// By step, the captured output "result_output" of its last token.
std::map<std::uint32_t, std::vector<float>> logits_of(const TracedModel::Run& run) {
  std::map<std::uint32_t, std::vector<float>> logits;
  const auto steps = run.steps();
  const auto read = run.reader().for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    for (const OutputValues& values : of.outputs)
      if (values.of == ValuesOf::Output) logits[of.step.v] = values.values;
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return logits;
}

std::vector<double> probabilities(const std::vector<float>& logits) {
  const double most = double{std::ranges::max(logits)};
  std::vector<double> all(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) sum += all[i] = std::exp(double{logits[i]} - most);
  for (double& p : all) p /= sum;
  return all;
}

// Whether the row says what these logits say.
void expect_says(const LensRow& row, const std::vector<float>& logits, double tolerance) {
  SCOPED_TRACE(std::format("token {}, layer {}", row.token, row.layer.v));
  const std::vector<double> all = probabilities(logits);
  double entropy = 0;
  for (const double p : all)
    if (p > 0) entropy -= p * std::log2(p);
  EXPECT_NEAR(row.entropy.value(), entropy, 100 * tolerance);
  ASSERT_EQ(row.likely.size(), 10U);
  std::vector<double> sorted = all;
  std::ranges::sort(sorted, std::greater());
  for (std::size_t i = 0; i < row.likely.size(); ++i) {
    EXPECT_NEAR(row.likely[i].probability.value(), sorted[i], tolerance);
    EXPECT_NEAR(all.at(static_cast<std::size_t>(row.likely[i].id)), sorted[i], tolerance);
  }
  if (!row.chosen) return;
  const double p = all.at(static_cast<std::size_t>(row.chosen->id));
  EXPECT_NEAR(row.chosen->probability.value(), p, tolerance);
  EXPECT_EQ(row.likely.at(0).id == row.chosen->id, row.rank == 0);
}

// The model without the layers from `layers` on.
std::filesystem::path cut_model(const std::filesystem::path& model, std::int32_t layers,
                                const std::filesystem::path& out) {
  ggml_context* tensors = nullptr;
  const GgufContext whole(gguf_init_from_file(model.c_str(), {.no_alloc = false, .ctx = &tensors}));
  const GgmlContext owner(tensors);
  const GgufContext cut(gguf_init_empty());
  gguf_set_kv(cut.get(), whole.get());
  const std::string architecture =
      gguf_get_val_str(whole.get(), gguf_find_key(whole.get(), "general.architecture"));
  gguf_set_val_u32(cut.get(), (architecture + ".block_count").c_str(),
                   static_cast<std::uint32_t>(layers));
  for (std::int64_t i = 0; i < gguf_get_n_tensors(whole.get()); ++i) {
    const char* name = gguf_get_tensor_name(whole.get(), i);
    if (layer_of(name).v < layers) gguf_add_tensor(cut.get(), ggml_get_tensor(tensors, name));
  }
  EXPECT_TRUE(gguf_write_to_file(cut.get(), out.c_str(), false));
  return out;
}

class Lens : public ::testing::TestWithParam<const char*> {};

// What the model would have said after layer 0 is what llama.cpp says with a file that has only
// layer 0.
TEST_P(Lens, IsTheOutputOfAModelThatEndsAfterTheLayer) {
  const auto model = generated_model({.shape = GetParam(), .dims = {.layers = 3}});
  TracedModel traced(model);
  const auto run = traced.run(with_lens(9, 3));
  const std::vector<LensRow> rows = lens_of(run);
  ASSERT_EQ(rows.size(), 3U * 4) << "3 tokens, after 3 layers and the output: " << run.result.error;
  const auto logits = logits_of(run);
  std::vector<std::int32_t> tokens;
  for (const Token& token : run.captured.tokens) tokens.push_back(token.id);
  const TempFolder folder;
  for (std::int32_t layer = 0; layer < 3; ++layer) {
    PlainLlama plain(layer == 2 ? model : cut_model(model, layer + 1, folder.path() / "cut.gguf"),
                     TracedModel::small_context());
    std::size_t done = 0;
    for (const LensRow& row : rows) {
      if (row.layer.v != layer) continue;
      plain.decode(std::span(tokens).subspan(done, row.token - done));
      done = row.token;
      expect_says(row, plain.logits(), 1e-6);
    }
    EXPECT_EQ(done, tokens.size() - 1);
  }
  for (const LensRow& row : rows) {
    ASSERT_TRUE(row.chosen);
    EXPECT_EQ(row.chosen->id, tokens.at(row.token));
    EXPECT_EQ(row.chosen->text, run.captured.tokens.at(row.token).text.substr(0, 32));
    if (row.layer == LayerId{2} || row.layer == kNoLayer) {
      expect_says(row, logits.at(row.step.v), 1e-7);
      EXPECT_EQ(row.rank, 0U) << "greedy";
    }
  }
  EXPECT_TRUE(check_session(run.file).value().empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, Lens,
                         ::testing::Values("small", "moe", "qwen3-moe-like", "gpt-oss-like",
                                           "deepseek-like", "mamba", "rwkv"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(LogitLens, RanksATokenThatIsNotAmongTheLikelyOnes) {
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = with_lens(5, 6);
  request.sampling.temperature = 50;
  request.sampling.seed = 3;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.min_p = 0;
  const auto run = traced.run(request);
  const auto logits = logits_of(run);
  std::uint64_t worst = 0;
  const auto rows = lens_of(run, {.layer = kNoLayer});
  ASSERT_EQ(rows.size(), 6U);
  for (const LensRow& row : rows) {
    expect_says(row, logits.at(row.step.v), 1e-7);
    const auto& all = logits.at(row.step.v);
    const float of = all.at(static_cast<std::size_t>(row.chosen->id));
    EXPECT_EQ(row.rank, std::ranges::count_if(all, [&](float logit) { return logit > of; }));
    worst = std::max(worst, *row.rank);
  }
  EXPECT_GT(worst, 10U);
}

TEST(LogitLens, IsOfTheStepsThatChooseAToken) {
  TracedModel traced(two_layer_model("small"));
  GenerationRequest request = with_lens(100, 2);  // the prompt has two steps
  request.capture = {"lens@L1"};
  const auto run = traced.run(request);
  std::vector<std::pair<std::uint32_t, std::int32_t>> found;
  for (const LensRow& row : lens_of(run)) found.emplace_back(row.step.v, row.layer.v);
  EXPECT_EQ(found, (std::vector<std::pair<std::uint32_t, std::int32_t>>{
                       {1, 1}, {1, kNoLayer.v}, {2, 1}, {2, kNoLayer.v}}));
  EXPECT_EQ(lens_of(run, {.layer = LayerId{1}, .token = 101}).size(), 1U);
  EXPECT_FALSE(logit_lens(run.reader(), {.token = 102}).has_value());
  EXPECT_FALSE(logit_lens(run.reader(), {.layer = LayerId{2}}).has_value());

  request.capture = {"lens@S2"};
  EXPECT_EQ(lens_of(traced.run(request)).size(), 3U);
  request.capture = {"lens"};
  request.max_tokens = 0;
  const auto none = traced.run(request);
  ASSERT_EQ(lens_of(none).size(), 3U);
  for (const LensRow& row : lens_of(none)) EXPECT_FALSE(row.chosen || row.rank) << "none followed";
  EXPECT_TRUE(check_session(none.file).value().empty());
  request.capture_bytes = 2000;
  request.max_tokens = 3;
  const auto few = traced.run(request);
  std::uint64_t not_captured = 0;
  const auto read = few.reader().for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    not_captured += of.not_captured;
    return true;
  });
  ASSERT_TRUE(read.has_value());
  EXPECT_GT(not_captured, 0U);
  EXPECT_EQ(lens_of(few).size() + not_captured, 9U);
}

// The decoder's last layer is called result_embd, as the output of its norm would be.
TEST(LogitLens, HasTheDecoderOfAModelWithAnEncoder) {
  TracedModel traced(generated_model({.shape = "t5"}));
  const auto run = traced.run(with_lens(8, 3));
  const auto logits = logits_of(run);
  const auto rows = lens_of(run, {.layer = kNoLayer});
  ASSERT_EQ(rows.size(), 3U);
  for (const LensRow& row : rows) expect_says(row, logits.at(row.step.v), 1e-7);
  EXPECT_EQ(lens_of(run).size(), 3U * run.info.n_layers);
}

}  // namespace
}  // namespace tt::test
