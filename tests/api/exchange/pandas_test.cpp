// The examples of docs/pandas.md and the snippets of tests/data/pandas, run unchanged on a dense
// model and on a mixture of experts.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/columns/values.h"
#include "analysis/common/derived_graphs.h"
#include "analysis/experts/routing.h"
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
    reads.push_back(
        {access.expert < 0 ? tensor.name : columns::expert_name(tensor.name, access.expert),
         access.touched.v});
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
  ASSERT_TRUE(export_run_folder(reader, {.per_token = true}, folder / "files").has_value());
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

// What the snippets of tests/data/pandas must find, from the recording alone.
struct Expected {
  std::map<std::string, std::uint64_t> layers;   // bytes
  std::array<std::uint64_t, 3> qkv{};            // rows of Q, K, V
  std::map<std::string, std::uint64_t> experts;  // rows
  // Bytes of the weights that token 1 reads, by name and file offset.
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> pattern;
};

Expected expected_of(const SessionReader& reader, const SessionInfo& info) {
  Expected out;
  for (std::uint32_t i = 0; i < reader.step_count().value(); ++i) {
    const Step step = reader.step(StepId{i}).value();
    const auto derived = derive_graph(graph_of(reader, step));
    for_each_access(*derived->graph, derived->accesses, step, [&](const StepAccess& access) {
      const Tensor& tensor = derived->graph->tensor(access.tensor);
      if (tensor.layer != kNoLayer) out.layers[std::to_string(tensor.layer.v)] += access.touched.v;
      const bool is_read = tensor.kind == TensorKind::Weight && !access.write;
      for (const Role role : {Role::Q, Role::K, Role::V}) {
        if (tensor.role != role) continue;
        out.qkv[static_cast<std::size_t>(role) - static_cast<std::size_t>(Role::Q)] +=
            std::uint64_t{step.n_tokens} * (is_read ? info.n_heads : 1);
      }
      if (!is_read || step.first_token > 1 || step.first_token + step.n_tokens <= 1) return;
      const bool is_part = access.expert >= 0;
      const std::string name =
          is_part ? std::format("blk.{}.expert_{}.{}.weight", tensor.layer.v, access.expert,
                                tensor.name.contains("gate") ? "ffn_gate"
                                : tensor.name.contains("up") ? "ffn_up"
                                                             : "ffn_down")
                  : tensor.name;
      out.pattern[{name, is_part ? access.range.offset : tensor.file.offset}] += access.touched.v;
    });
    for (const RoutingRow& row : routing_rows(*graph_of(reader, step), step))
      out.experts[std::to_string(row.expert)] += 3;  // gate, up, down
  }
  return out;
}

class PandasSnippets : public ::testing::TestWithParam<const char*> {};

TEST_P(PandasSnippets, RunUnchangedOnEachExport) {
  TracedModel model(generated_model({.shape = GetParam()}));
  for (const std::uint32_t prompt : {1U, 6U}) {
    SCOPED_TRACE(prompt);
    const auto run = model.run(greedy_tokens(prompt, 7));
    const SessionReader reader = run.reader();
    const Expected expected = expected_of(reader, run.info);
    const std::uint32_t tokens = prompt + 6;
    const ExportRange range{.per_head = true, .per_token = true};
    for (const char* source : {"parquet", "csv", "folder"}) {
      SCOPED_TRACE(source);
      // Python takes some seconds: each format once, Parquet with the long prompt.
      if ((source == std::string_view("parquet")) != (prompt > 1)) continue;
      const TempFolder folder;
      std::ofstream(folder / "trace.parquet", std::ios::binary)
          << export_text(reader, {.format = Format::Parquet, .range = range});
      std::ofstream(folder / "trace.csv", std::ios::binary)
          << export_text(reader, {.format = Format::Csv, .range = range});
      ASSERT_TRUE(export_run_folder(reader, range, folder / "run").has_value());
      const std::string output = command_output(
          std::format("cd {0} && HOME={0} MPLCONFIGDIR={0} python3 -W ignore {1} {2} {3}",
                      folder.path().string(), source_path("tests/api/exchange/run_snippets.py"),
                      source_path("tests/data/pandas"), source));
      const json found = json::parse(output, nullptr, false);
      ASSERT_TRUE(found.is_object()) << output;
      EXPECT_EQ(found["blocks"], 17);
      EXPECT_EQ(found["deterministic"],
                run.info.n_experts == 0 ? json(true) : json("Pattern not deterministic!"));
      EXPECT_EQ(found["layers"], json(expected.layers));
      EXPECT_EQ(found["heat"], found["rows_of_layers"]);
      EXPECT_EQ(found["qkv"], json(expected.qkv));
      EXPECT_EQ(found["hot"]["blk.0.attn_q.weight"], tokens * run.info.n_heads);
      EXPECT_EQ(found["heads"].size(), run.info.n_heads);
      for (const json& rows : found["heads"]) EXPECT_EQ(rows, found["heads"]["0"]);
      EXPECT_EQ(found["experts"], json(expected.experts));
      EXPECT_EQ(found["experts_per_token"],
                run.info.n_experts == 0 ? json::array() : json({run.info.n_experts_used}));
      if (prompt != 1) continue;  // token 1 of a longer prompt has a part of each read
      std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> pattern;
      for (const json& entry : found["pattern"])
        pattern[{entry["tensor_name"], entry["file_offset"]}] +=
            entry["size_bytes"].get<std::uint64_t>();
      EXPECT_EQ(pattern, expected.pattern);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PandasSnippets, ::testing::Values("small", "moe"),
                         [](const auto& made) { return std::string(made.param); });

INSTANTIATE_TEST_SUITE_P(Models, PandasExamples, ::testing::Values("small", "moe"),
                         [](const auto& made) { return std::string(made.param); });

}  // namespace
}  // namespace tt::test
