// Runs the notebook on a model with experts and on a dense model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analysis/aggregate/breakdown.h"
#include "analysis/experts/experts.h"
#include "analysis/sql/query.h"
#include "analysis/weights/pattern.h"
#include "analysis/weights/sequentiality.h"
#include "tests/api/exchange/export_check.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

using nlohmann::json;

// The number returned by a SQL query.
double number_of(const TracedModel::Run& run, const std::string& sql) {
  auto query = sql::Query::prepare(SessionReader::open(run.file).value(), sql);
  EXPECT_TRUE(query.has_value());
  const auto row = query->next();
  EXPECT_TRUE(row.has_value() && *row != nullptr);
  return std::get<double>((**row)[0]);
}

// Compares the figures of the notebook with those of analysis/.
void expect_findings(const json& found, const TracedModel::Run& run) {
  const SessionReader reader = run.reader();
  const auto index = SessionIndex::build(reader).value();
  const TraceFilter weights{.kind = TensorKind::Weight};
  const auto by_tensor =
      breakdown(index, {.by = Axis::Tensor,
                        .filter = weights,
                        .order = Order<Value>{.by = Value::BytesRead, .descending = true}})
          .value();
  const std::size_t n = by_tensor.rows.size(), hot = std::max<std::size_t>(1, n / 10);
  double hottest = 0, coldest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i < hot) hottest += by_tensor.rows[i].all.bytes_read;
    if (i >= n - n / 2) coldest += by_tensor.rows[i].all.bytes_read;
  }
  const double all = by_tensor.total.all.bytes_read;
  EXPECT_NEAR(found["hot_share"].get<double>(), hottest / all, 1e-9);
  EXPECT_NEAR(found["cold_share"].get<double>(), coldest / all, 1e-9);
  const auto same = determinism(reader).value();
  EXPECT_NEAR(found["identical_pairs"].get<double>(),
              static_cast<double>(same.same_weights) / static_cast<double>(same.pairs), 1e-9);
  const auto order = sequentiality(index, weights, kDefaultGap, {}).value().total;
  EXPECT_NEAR(found["sequential_share"].get<double>(),
              static_cast<double>(order.sequential) / static_cast<double>(order.reads), 1e-9);
  EXPECT_NEAR(found["qkv_share"].get<double>(),
              number_of(run,
                        "SELECT total(size_bytes) FILTER (WHERE qkv_type IS NOT NULL) / "
                        "total(size_bytes) FROM access WHERE tensor_kind = 'weight' AND "
                        "NOT write"),
              1e-9);
  EXPECT_NEAR(found["cache_share"].get<double>(),
              number_of(run,
                        "SELECT total(size_bytes) FILTER (WHERE memory_source = 'kv') / "
                        "total(size_bytes) FROM access WHERE phase = 'generate' AND "
                        "NOT write"),
              1e-9);
  if (found["experts"] == 0) return;
  std::uint64_t turned = 0, followed = 0;
  for (const RouterUse& router : expert_use(reader, Phase::Generate).value()) {
    turned += router.turned;
    followed += router.followed;
  }
  EXPECT_NEAR(found["turnover"].get<double>(),
              static_cast<double>(turned) / static_cast<double>(followed), 1e-9);
}

json notebook_results(const char* shape) {
  TracedModel model(generated_model({.shape = shape}));
  const auto run = model.run(greedy_tokens(9, 12));
  const TempFolder folder;
  std::ofstream(folder / "s.parquet", std::ios::binary)
      << export_text(run.reader(), {.format = exchange::Format::Parquet});
  const std::string command = std::format(
      "cd {} && HOME={} IPYTHONDIR={} python3 {}/run_notebook.py {} s.parquet 2>err",
      folder.path().string(), folder.path().string(), folder.path().string(),
      source_path("tests/api/exchange"), source_path("analysis/notebook/session.ipynb"));
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  std::ifstream err(folder / "err");
  EXPECT_EQ(pclose(pipe), 0) << std::string(std::istreambuf_iterator<char>(err), {});
  json answers = json::parse(output, nullptr, false);
  if (answers.is_object()) expect_findings(answers["findings"], run);
  return answers;
}

TEST(Notebook, RunsOnADenseModel) {
  const json answers = notebook_results("small");
  ASSERT_TRUE(answers.is_object());
  EXPECT_GE(answers["images"], 4);
  const json& found = answers["findings"];
  EXPECT_EQ(found["identical_pairs"], 1.0);  // every token reads the same weights
  EXPECT_EQ(found["experts"], 0);
  EXPECT_GT(found["hot_share"], found["cold_share"]);
  EXPECT_GT(found["pinned_half"], found["lru_half"]);  // a cycle defeats LRU
  EXPECT_GT(found["cache_share"], 0.0);
}

TEST(Notebook, RunsOnAModelWithExperts) {
  const json answers = notebook_results("moe");
  ASSERT_TRUE(answers.is_object());
  EXPECT_EQ(answers["images"], 5);
  const json& found = answers["findings"];
  EXPECT_GT(found["experts"], 0);
  EXPECT_GT(found["entropy"], 0.0);
  EXPECT_LE(found["entropy"], 1.0);
  EXPECT_LT(found["identical_pairs"], 1.0);
}

}  // namespace
}  // namespace tt::test
