// Exports with one row per token: the rows of a prompt, whose they are, and what they add up to.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/experts/routing.h"
#include "api/exchange/import/import.h"
#include "api/exchange/run_folder/run_folder.h"
#include "tests/api/exchange/export_check.h"
#include "tests/support/command_output.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

using namespace tt::exchange;
using nlohmann::json;

constexpr std::uint32_t kPromptTokens = 9, kGeneratedTokens = 6;

class PerToken : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static TracedModel model(generated_model({.shape = "moe"}));
    run_ = new TracedModel::Run(model.run(greedy_tokens(kPromptTokens, kGeneratedTokens)));
  }
  static void TearDownTestSuite() { delete run_; }

  json rows(bool per_token) const {
    const auto document = json::parse(
        export_text(reader_, {.format = Format::Json, .range = {.per_token = per_token}}));
    return document["accesses"];
  }

  static inline TracedModel::Run* run_ = nullptr;
  const SessionReader reader_ = run_->reader();
};

TEST_F(PerToken, TokensFollowOneAnother) {
  std::vector<std::uint32_t> tokens;
  for (const json& row : rows(true))
    if (tokens.empty() || tokens.back() != row["token_id"]) tokens.push_back(row["token_id"]);
  ASSERT_EQ(tokens.size(),
            kPromptTokens + kGeneratedTokens - 1);  // the last token is not evaluated
  for (std::uint32_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], i);
}

// Each access is repeated for the tokens that share it, which divide its bytes and its time.
TEST_F(PerToken, SharedRowsAreMarked) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // step, access, part
  const auto key = [](const json& row) { return Key{row["step"], row["access"], row["part"]}; };
  std::map<Key, std::uint64_t> bytes, shares;
  std::map<Key, std::int64_t> times, time_shares;
  for (const json& row : rows(false)) {
    bytes[key(row)] = row["size_bytes"];
    times[key(row)] = row["self_ns"];
  }
  std::map<Key, std::set<std::uint32_t>> tokens;
  std::map<Key, std::uint32_t> sharing;
  std::set<std::uint32_t> counts;
  for (const json& row : rows(true)) {
    shares[key(row)] += row["size_bytes"].get<std::uint64_t>();
    time_shares[key(row)] += row["self_ns"].get<std::int64_t>();
    EXPECT_TRUE(tokens[key(row)].insert(row["token_id"].get<std::uint32_t>()).second) << row;
    sharing[key(row)] = row["token_count"];
    if (row["step"] == 0) counts.insert(row["token_count"].get<std::uint32_t>());
  }
  EXPECT_EQ(shares, bytes);
  EXPECT_EQ(time_shares, times);
  ASSERT_EQ(tokens.size(), bytes.size());
  for (const auto& [row, of_row] : tokens) ASSERT_EQ(of_row.size(), sharing[row]);
  EXPECT_TRUE(counts.contains(1));              // embeddings
  EXPECT_TRUE(counts.contains(kPromptTokens));  // weights of attention
}

// `self_ns` adds up to the time of the ops, in every table that has it.
TEST_F(PerToken, TimesAddUpToThoseOfTheOps) {
  std::int64_t ops = 0;
  for (std::uint32_t i = 0; i < reader_.step_count().value(); ++i) {
    const Step step = reader_.step(StepId{i}).value();
    ASSERT_FALSE(step.op_ends.empty());
    ops += (step.op_ends.back() - step.first_op).v;
  }
  for (const bool per_token : {false, true}) {
    for (const bool per_head : {false, true}) {
      const auto document = json::parse(export_text(
          reader_,
          {.format = Format::Json, .range = {.per_head = per_head, .per_token = per_token}}));
      std::int64_t sum = 0;
      for (const json& row : document["accesses"]) {
        EXPECT_FALSE(row.contains("duration_ns"));
        sum += row["self_ns"].get<std::int64_t>();
      }
      EXPECT_EQ(sum, ops) << per_token << per_head;
    }
  }
  const std::string sums = command_output(std::format(
      "{} sql {} --csv 'SELECT sum(self_ns) FROM access'", kTestPaths.tt, run_->file.string()));
  EXPECT_EQ(sums, std::format("sum(self_ns)\n{}\n", ops));
}

TEST_F(PerToken, ExpertsAreThoseOfTheToken) {
  using Choice = std::tuple<std::int32_t, std::uint32_t, std::int32_t, std::int32_t>;
  std::set<Choice> expected, found;
  const Step step = reader_.step(StepId{0}).value();
  for (const RoutingRow& row : routing_rows(*graph_of(reader_, step), step)) {
    expected.emplace(row.layer.v, row.token, static_cast<std::int32_t>(row.expert),
                     static_cast<std::int32_t>(row.rank));
  }
  for (const json& row : rows(true)) {
    const std::string name = row["tensor_name"];
    if (row["step"] != 0 || !name.contains("ffn_up") || !row.contains("expert_id")) continue;
    EXPECT_TRUE(
        found.emplace(row["layer_id"], row["token_id"], row["expert_id"], row["expert_rank"])
            .second);
    EXPECT_EQ(name, row["expert_name"].get<std::string>());
    EXPECT_EQ(name, std::format("blk.{}.expert_{}.ffn_up.weight", row["layer_id"].get<int>(),
                                row["expert_id"].get<int>()));
  }
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(found.empty());
}

TEST_F(PerToken, EmbeddingRowsAreThoseOfTheToken) {
  std::map<std::uint32_t, std::uint64_t> rows_of;
  for (const json& row : rows(true)) {
    if (row["tensor_name"] != "token_embd.weight" || row["extent"] != "rows") continue;
    const std::uint64_t offset = row["file_offset"], begin = row["tensor_file_offset"];
    EXPECT_TRUE(
        rows_of.emplace(row["token_id"], (offset - begin) / row["unit_bytes"].get<std::uint64_t>())
            .second);
  }
  const auto tokens = reader_.tokens(0, kPromptTokens + kGeneratedTokens - 1);
  ASSERT_TRUE(tokens.has_value());
  ASSERT_EQ(rows_of.size(), tokens->size());
  for (const Token& token : *tokens) EXPECT_EQ(std::int64_t(rows_of[token.index]), token.id);
}

TEST_F(PerToken, RunFolderHasTheRowsAndIsNotImported) {
  const TempFolder folder;
  const auto run = folder / "run", once = folder / "once";
  ASSERT_TRUE(export_run_folder(reader_, {.per_token = true}, run).has_value());
  ASSERT_TRUE(export_run_folder(reader_, {}, once).has_value());
  const auto metadata = [](const std::filesystem::path& of) {
    std::ifstream file(of / "trace_metadata.json");
    return json::parse(file);
  };
  json per_token = metadata(run), whole = metadata(once);
  EXPECT_EQ(per_token["rows_per_token"], true);
  EXPECT_EQ(per_token["totals"], whole["totals"]);
  EXPECT_EQ(per_token["steps"], whole["steps"]);

  const json expected = rows(true);
  std::ifstream file(run / "tensor_access.bin", std::ios::binary);
  std::array<char, kRecordBytes> bytes{};
  for (const json& row : expected) {
    ASSERT_TRUE(file.read(bytes.data(), bytes.size()));
    const AccessRecord record = record_from(bytes, kRunFolderVersion);
    ASSERT_EQ(record.token_id, row["token_id"]);
    ASSERT_EQ(record.size_bytes, row["size_bytes"]);
    ASSERT_EQ((record.flags & kSharedByTokens) != 0, row["token_count"] > 1);
  }
  EXPECT_FALSE(file.read(bytes.data(), bytes.size()));

  const auto imported = import_run_folder(run, folder / "s.ttrace");
  ASSERT_FALSE(imported.has_value());
  EXPECT_TRUE(imported.error().message.contains("--per-token")) << imported.error().message;
  EXPECT_TRUE(import_run_folder(once, folder / "s.ttrace").has_value());
}

}  // namespace
}  // namespace tt::test
