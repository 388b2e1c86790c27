// The examples of docs/pandas.md, run unchanged on a dense model and on a mixture of experts.
#include <gtest/gtest.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "api/exchange/run_folder/run_folder.h"
#include "tests/api/exchange/export_check.h"
#include "tests/support/command_output.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

using namespace tt::exchange;
using nlohmann::json;

constexpr std::uint32_t kPrompt = 7, kGenerated = 6, kTokens = kPrompt + kGenerated - 1;

// Reads of weights by the first generated token, without the exports.
json reads_of_first_token(const SessionReader& reader) {
  json reads = json::array();
  const Step step = reader.step(StepId{1}).value();
  const auto derived = derive_graph(graph_of(reader, step));
  for_each_access(*derived->graph, derived->accesses, step, [&](const StepAccess& access) {
    const Tensor& tensor = derived->graph->tensor(access.tensor);
    if (access.write || tensor.kind != TensorKind::Weight) return;
    reads.push_back({tensor.name, access.touched.v});
  });
  return reads;
}

class PandasExamples : public ::testing::TestWithParam<const char*> {};

TEST_P(PandasExamples, RunUnchanged) {
  TracedModel model(generated_model({.shape = GetParam()}));
  const auto run = model.run(greedy_tokens(kPrompt, kGenerated));
  const SessionReader reader = run.reader();
  const TempFolder folder;
  std::ofstream(folder / "tokens.parquet", std::ios::binary)
      << export_text(reader, {.format = Format::Parquet, .range = {.per_token = true}});
  ASSERT_TRUE(export_run_folder(reader, {}, folder / "files").has_value());
  const std::string output = command_output(std::format(
      "cd {0} && HOME={0} MPLCONFIGDIR={0} python3 {1} {2}", folder.path().string(),
      source_path("tests/api/exchange/run_examples.py"), source_path("docs/pandas.md")));
  const json found = json::parse(output, nullptr, false);
  ASSERT_TRUE(found.is_object()) << output;

  EXPECT_EQ(found["examples"], 9);
  const FiveTotals walked = walked_totals(reader);
  EXPECT_NEAR(found["bytes"].get<double>(), static_cast<double>(walked.read + walked.written), 1);
  EXPECT_EQ(found["heat_shape"], json({kTokens, run.info.n_layers}));
  for (const json& bytes : found["pictures"]) EXPECT_GT(bytes, 1000);

  // Every token reads these weights once in every layer.
  for (const char* role : {"Q", "K", "V", "O"})
    EXPECT_EQ(found["qkv"][role], kTokens * run.info.n_layers) << role;
  EXPECT_EQ(found["hot"]["blk.0.attn_q.weight"], kTokens);
  std::uint64_t of_ops = 0;
  for (const auto& [name, count] : found["ops"].items()) of_ops += count.get<std::uint64_t>();
  EXPECT_EQ(of_ops, found["rows"]);

  json pattern = json::array();
  for (const json& entry : found["pattern"]) {
    pattern.push_back({entry["tensor_name"], entry["size_bytes"]});
    const std::string name = entry["tensor_name"];
    EXPECT_EQ(entry["layer_id"].get<int>(),
              name.starts_with("blk.") ? std::stoi(name.substr(4)) : -1);
    EXPECT_GT(entry["file_offset"], 0);
  }
  EXPECT_EQ(pattern, reads_of_first_token(reader));

  if (run.info.n_experts == 0) {
    EXPECT_EQ(found["expert_rows"], 0);
  } else {
    EXPECT_EQ(found["experts_per_token"], json({run.info.n_experts_used}));
    EXPECT_EQ(found["same_experts"], true);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PandasExamples, ::testing::Values("small", "moe"),
                         [](const auto& made) { return std::string(made.param); });

}  // namespace
}  // namespace tt::test
