// Compares each export format with a walk over the accesses, for all kinds of sessions.
#include <arrow/memory_pool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "api/exchange/columnar/columnar_export.h"
#include "api/exchange/run_folder/run_folder.h"
#include "api/exchange/run_folder/run_images.h"
#include "api/json/model_json.h"
#include "tests/api/exchange/export_check.h"
#include "tests/api/exchange/test_models.h"
#include "tests/api/exchange/timeline_check.h"
#include "tests/api/exchange/totals_check.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/gguf/gguf_index.h"

namespace tt::test {
namespace {

using namespace tt::exchange;
using nlohmann::json;

TEST(Export, SmallSessionMatchesReference) {
  const SmallSession session({small_step(0), small_step(1)});
  const SessionReader reader = session.reader();
  expect_exports_agree(reader);
  const auto rows = csv_rows(export_text(reader, {.format = Format::Csv}));
  // Step 0, op 0: an embedding row for each of two tokens, the ids and the output.
  EXPECT_EQ(rows[1][0], "small");
  EXPECT_EQ(rows.size(), 1 + 2 * (4 + 3 + 3 + 3 + 3));
}

TEST(Export, RandomSessionsMatchReference) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const RandomSession session = random_session(seed);
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    expect_exports_agree(*reader);
    if (HasFailure()) return;
  }
}

// Includes cancelled steps, steps without op times, and ops that end before they begin.
TEST(Totals, AgreeAcrossAllInterfaces) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    RandomSession session = plausible_session(seed, 30);
    if (seed % 2 == 1) session = with_decreasing_times(std::move(session), seed);
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    expect_totals_agree(folder / "s.ttrace");
  }
}

TEST(Export, WritesImagesOfAnySession) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    ASSERT_TRUE(write_session(folder / "s.ttrace", random_session(seed)).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    const auto index = SessionIndex::build(*reader);
    ASSERT_TRUE(index.has_value());
    const WriteResult done =
        write_run_images(*index, {0, index->steps().size()}, folder.path(), never_cancel);
    ASSERT_TRUE(done.has_value()) << done.error().message;
    for (const char* name : {"heatmap_token_layer.png", "timeline_offset.png"}) {
      std::ifstream file(folder / name, std::ios::binary);
      std::string head(24, '\0');
      file.read(head.data(), 24);
      // Signature and IHDR: 1400 x 720.
      EXPECT_EQ(head.substr(1, 3), "PNG") << name;
      EXPECT_EQ(head.substr(16), std::string("\0\0\x05\x78\0\0\x02\xd0", 8)) << name;
    }
  }
}

TEST(Export, DenseMoeRecurrentAndSplitModelsMatchReference) {
  for_each_test_model([](std::string_view shape, const std::filesystem::path& path) {
    TracedModel model(path);
    const auto run = model.run(greedy_tokens(9, 6));
    const SessionReader reader = run.reader();
    const FiveTotals walked = walked_totals(reader);
    EXPECT_GT(walked.from_file, 0U);
    EXPECT_EQ(walked.of_experts > 0, shape == "moe");
    expect_exports_agree(reader);
    EXPECT_GT(expect_timelines(reader), 500U);
  });
}

TEST(Export, RowsPerHeadAddUpToTheSameBytes) {
  TracedModel model(generated_model({.shape = "small"}));
  const auto run = model.run(greedy_tokens(5, 3));
  const SessionReader reader = run.reader();
  const SessionInfo info = reader.info().value();
  std::map<std::string, std::uint64_t> whole, divided;
  std::map<std::string, std::int32_t> heads;
  for (const bool per_head : {false, true}) {
    const json document =
        json::parse(export_text(reader, {.format = Format::Json, .range = {.per_head = per_head}}));
    for (const json& row : document["accesses"]) {
      const std::string name = row["tensor_name"];
      (per_head ? divided : whole)[name] += row["size_bytes"].get<std::uint64_t>();
      EXPECT_TRUE(per_head || !row.contains("attention_head"));
      if (row.contains("attention_head"))
        heads[name] = std::max(heads[name], row["attention_head"].get<std::int32_t>() + 1);
    }
  }
  EXPECT_EQ(whole, divided);
  EXPECT_EQ(heads["blk.0.attn_q.weight"], static_cast<std::int32_t>(info.n_heads));
  // The heads of queries that a KV head serves.
  EXPECT_EQ(heads["blk.0.attn_k.weight"], static_cast<std::int32_t>(info.n_heads));
}

TEST(Export, ExportsRangeOfSteps) {
  const SmallSession session({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = session.reader();
  const auto rows = csv_rows(export_text(
      reader, {.format = Format::Csv, .range = {.first = StepId{1}, .last = StepId{1}}}));
  ASSERT_EQ(rows.size(), 1 + 16U);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i][1], "1");
}

TEST(Export, LogLevelSelectsEvents) {
  const SmallSession session({small_step(0)});
  const SessionReader reader = session.reader();
  const auto events = [&](LogLevel level) {
    std::map<std::string, int> counts;
    std::istringstream lines(export_text(reader, {.format = Format::Ndjson, .level = level}));
    for (std::string line; std::getline(lines, line);) ++counts[json::parse(line)["event"]];
    return counts;
  };
  using Counts = std::map<std::string, int>;
  EXPECT_EQ(events(LogLevel::Minimal),
            (Counts{{"session_start", 1}, {"step_begin", 1}, {"step_end", 1}, {"session_end", 1}}));
  EXPECT_EQ(events(LogLevel::Detailed)["tensor_log"], 16);
}

// The value statistics of the log by step and op.
using StatsOfOps = std::map<std::pair<std::uint64_t, std::uint64_t>, json>;

StatsOfOps logged_stats(const SessionReader& reader, LogLevel level) {
  StatsOfOps stats;
  std::istringstream lines(export_text(reader, {.format = Format::Ndjson, .level = level}));
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line);
    if (!entry.contains("output_min")) continue;
    EXPECT_EQ(entry["event"], "tensor_log");
    EXPECT_EQ(entry["write"], true);
    json of_output;
    for (const auto& [name, value] : entry.items())
      if (name.starts_with("output_")) of_output[name.substr(7)] = value;
    const bool is_new = stats.try_emplace({entry["step"], entry["op"]}, of_output).second;
    EXPECT_TRUE(is_new) << line;
  }
  return stats;
}

// A session recorded with value statistics of a real model.
TEST(Export, VerboseLogHasOutputStatistics) {
  TracedModel model(generated_model({.shape = "small"}));
  GenerationRequest request = greedy_tokens(9, 4);
  request.level = Level::Verbose;
  request.stats_pattern = "^(ffn_out|l_out|result_output)(-[0-9]+)?$";
  const auto run = model.run(request);
  const SessionReader reader = run.reader();
  StatsOfOps recorded;
  for (const Step& step : run.steps()) {
    for (const ValueStats& of : step.stats) {
      recorded[{step.id.v, of.op.v}] = {{"min", of.min}, {"max", of.max}, {"mean", of.mean},
                                        {"std", of.std}, {"nan", of.nan}, {"inf", of.inf}};
      EXPECT_LT(of.min, of.mean);
    }
  }
  EXPECT_GT(recorded.size(), 4 * 4U);
  const StatsOfOps logged = logged_stats(reader, LogLevel::Verbose);
  ASSERT_EQ(logged.size(), recorded.size());
  for (const auto& [op, of] : recorded) {
    const json& logged_value = logged.at(op);
    for (const auto& [name, value] : of.items())  // compare as float
      EXPECT_EQ(logged_value[name].get<float>(), value.get<float>()) << name;
  }
  EXPECT_TRUE(logged_stats(reader, LogLevel::Detailed).empty());
  EXPECT_TRUE(logged_stats(reader, LogLevel::Minimal).empty());
}

TEST(Export, NonFiniteStatisticsAreNull) {
  Step step = small_step(0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  step.stats = {{.op = OpId{3}, .min = nan, .max = nan, .mean = nan, .std = nan, .nan = 16}};
  const SmallSession session({step});
  EXPECT_EQ(logged_stats(session.reader(), LogLevel::Verbose), (StatsOfOps{{{0, 3},
                                                                            {{"min", nullptr},
                                                                             {"max", nullptr},
                                                                             {"mean", nullptr},
                                                                             {"std", nullptr},
                                                                             {"nan", 16},
                                                                             {"inf", 0}}}}));
}

// gguf_structure.csv lists every weight of the session as `tt gguf --format csv` prints it, except
// weights without a layer.
TEST(Export, RunFolderListsTheModelsWeights) {
  for_each_test_model([](std::string_view, const std::filesystem::path& path) {
    TracedModel model(path);
    const auto run = model.run(greedy_tokens(9, 3));
    const SessionReader reader = run.reader();
    const TempFolder folder;
    const WriteResult written = export_run_folder(reader, {}, folder / "run");
    ASSERT_TRUE(written.has_value()) << written.error().message;
    std::ifstream file(folder / "run" / "gguf_structure.csv");
    auto found = csv_rows({std::istreambuf_iterator<char>(file), {}});
    const auto index = GgufIndex::open(path);
    ASSERT_TRUE(index.has_value()) << index.error();
    std::string header = csv_of(*index);
    std::erase(header, '\r');
    auto expected = csv_rows(header);
    ASSERT_FALSE(found.empty());
    // `heat` is a column of the session; the others are those of the file.
    EXPECT_EQ(found.front(), (std::vector<std::string>{"tensor_name", "file_offset", "size_bytes",
                                                       "layer_id", "component_type", "model_file",
                                                       "tensor_type", "shape", "heat"}));
    std::set<std::string> heats;
    for (auto& row : found) {
      if (&row != &found.front()) heats.insert(row.back());
      row.pop_back();
    }
    EXPECT_TRUE(heats.contains("cold"));
    heats.erase("hot");
    heats.erase("warm");
    EXPECT_EQ(heats, std::set<std::string>{"cold"});
    // No layer is -1 here.
    for (auto& row : expected)
      if (row[3] == std::string(1, '\0')) row[3] = "-1";
    EXPECT_EQ(expected.size(), 1 + index->tensors().size());
    for (std::size_t i = 2; i < found.size(); ++i)
      EXPECT_LE(std::stoull(found[i - 1][1]), std::stoull(found[i][1])) << "sorted by offset";
    std::ranges::sort(found);
    std::ranges::sort(expected);
    EXPECT_EQ(found, expected);
  });
}

// Memory of the Parquet writer at each write.
TEST(Export, ParquetMemoryIsIndependentOfSessionLength) {
  const auto most_memory = [](std::uint32_t steps) {
    std::vector<Step> all;
    for (std::uint32_t i = 0; i < steps; ++i) all.push_back(small_step(i));
    const SmallSession session(all);
    const SessionReader reader = session.reader();
    auto rows = SessionRows::open(reader, {});
    const std::int64_t before = arrow::default_memory_pool()->bytes_allocated();
    std::int64_t most = 0;
    const WriteResult written = export_parquet(
        *rows,
        [&](std::string_view) -> WriteResult {
          most = std::max(most, arrow::default_memory_pool()->bytes_allocated() - before);
          return {};
        },
        never_cancel, {.page_rows = 100, .group_rows = 1000});
    EXPECT_TRUE(written.has_value());
    EXPECT_EQ(arrow::default_memory_pool()->bytes_allocated(), before);
    return most;
  };
  const std::int64_t of_two_groups = most_memory(130);
  EXPECT_GT(of_two_groups, 0);
  EXPECT_LT(most_memory(2000), of_two_groups * 5 / 4);
}

TEST(Export, StopsOnSinkErrorAndCancellation) {
  const SmallSession session({small_step(0), small_step(1)});
  const SessionReader reader = session.reader();
  for (const FormatInfo& facts : formats()) {
    SCOPED_TRACE(facts.name);
    const WriteResult full =
        export_session(reader, {.format = facts.format}, [](auto) -> WriteResult {
          return std::unexpected(TraceError{TraceError::Kind::DiskFull, "full"});
        });
    ASSERT_FALSE(full.has_value());
    EXPECT_EQ(full.error().kind, TraceError::Kind::DiskFull);
    const WriteResult cancelled = export_session(
        reader, {.format = facts.format}, [](auto) -> WriteResult { return {}; },
        [] { return false; });
    ASSERT_FALSE(cancelled.has_value());
    EXPECT_EQ(cancelled.error().kind, TraceError::Kind::Cancelled);
  }
}

}  // namespace
}  // namespace tt::test
