// The residual stream, compared with the outputs of the ops that add to it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/tables/value_summary.h"
#include "analysis/values/residual_stream.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

// By name, the rows of all steps in order.
using Rows = std::map<std::string, std::vector<std::vector<float>>>;

Rows rows_of(const TracedModel::Run& run) {
  Rows rows;
  const auto steps = run.steps();
  const auto read = run.reader().for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    for (const OutputValues& values : of.outputs) {
      auto& list = rows[value_name(*graph_of(run.reader(), steps[of.step.v]), values)];
      const auto size = static_cast<std::ptrdiff_t>(values.ne[0]);
      for (auto at = values.values.begin(); at != values.values.end(); at += size)
        list.emplace_back(at, at + size);
    }
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return rows;
}

double norm_of(const std::vector<float>& row) {
  double sum = 0;
  for (const float value : row) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// Of the last `n` rows: the last layer has only the last token of the prompt.
double mean_norm(const std::vector<std::vector<float>>& rows, std::size_t n) {
  double sum = 0;
  for (std::size_t i = rows.size() - n; i < rows.size(); ++i) sum += norm_of(rows[i]);
  return sum / static_cast<double>(n);
}

GenerationRequest capturing(const char* rule) {
  GenerationRequest request = greedy_tokens(9, 4);
  request.capture = {rule};
  return request;
}

// What is added is the output of an op, which the run with the same tokens captured by itself.
TEST(ResidualStream, IsWhatTheOpsAddToIt) {
  for (const char* shape : {"small", "moe", "gpt-oss-like", "mamba"}) {
    SCOPED_TRACE(shape);
    TracedModel traced(generated_model({.shape = shape, .dims = {.layers = 3}}));
    const auto run = traced.run(capturing("l_out|ffn_inp|embd"));
    const Rows added = rows_of(traced.run(capturing("attn_out-|ffn_out-|ffn_moe_out-|node_")));
    const Rows streams = rows_of(run);
    const auto table = residual_stream(run.reader());
    ASSERT_TRUE(table.has_value());
    ASSERT_EQ(table->layers.size(), 3U);
    const bool has_ffn = std::string(shape) != "mamba";
    for (const ResidualLayer& layer : table->layers) {
      const std::string number = std::to_string(layer.layer.v);
      SCOPED_TRACE(number);
      const auto& after = streams.at("l_out-" + number);
      EXPECT_EQ(layer.tokens, after.size());
      EXPECT_NEAR(layer.norm.value(), mean_norm(after, after.size()), 1e-6);
      ASSERT_EQ(layer.mixer.has_value(), has_ffn);
      ASSERT_EQ(layer.ffn.has_value(), has_ffn);
      if (has_ffn) {
        const double rounding = 1e-5 * *layer.norm;
        EXPECT_NEAR(*layer.mixer, mean_norm(added.at("attn_out-" + number), after.size()),
                    rounding);
        const bool experts = added.contains("ffn_moe_out-" + number);
        EXPECT_NEAR(
            *layer.ffn,
            mean_norm(added.at((experts ? "ffn_moe_out-" : "ffn_out-") + number), after.size()),
            rounding);
      }
      // The cosine, of the last token of the last step.
      ASSERT_TRUE(layer.similar && layer.change);
      EXPECT_LE(std::abs(*layer.similar), 1 + 1e-9);
      const double n = static_cast<double>(after.size());
      const auto& before = layer.layer.v == 0
                               ? streams.at("embd")
                               : streams.at("l_out-" + std::to_string(layer.layer.v - 1));
      double cosine = 0, change = 0;
      const std::size_t prompt = before.size() - after.size();  // the last layer has its last token
      for (std::size_t i = 0; i < after.size(); ++i) {
        const auto &a = before[i + prompt], &b = after[i];
        double product = 0, squares = 0;
        for (std::size_t e = 0; e < a.size(); ++e) {
          product += double{a[e]} * double{b[e]};
          squares += std::pow(double{a[e]} - double{b[e]}, 2);
        }
        cosine += product / (norm_of(a) * norm_of(b));
        change += std::sqrt(squares);
      }
      EXPECT_NEAR(*layer.similar, cosine / n, 1e-9);
      EXPECT_NEAR(*layer.change, change / n, 1e-6);
    }
  }
}

TEST(ResidualStream, IsUnknownWhereNothingWasCaptured) {
  TracedModel traced(generated_model({.shape = "rwkv", .dims = {.layers = 2}}));
  const auto run = traced.run(capturing("l_out|ffn_inp|embd"));
  const auto table = residual_stream(run.reader()).value();
  ASSERT_EQ(table.layers.size(), 2U);
  EXPECT_FALSE(table.layers[0].mixer) << "layer 0 gets the embedding after a norm";
  EXPECT_TRUE(table.layers[0].ffn && table.layers[1].mixer && table.layers[1].similar);
  const auto none = residual_stream(traced.run(capturing("attn_norm")).reader()).value();
  EXPECT_TRUE(none.layers.empty());
}

}  // namespace
}  // namespace tt::test
