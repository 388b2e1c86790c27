// tt hot, as a table and as JSON.
#include <gtest/gtest.h>

#include <cstdint>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "analysis/common/format_units.h"
#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

TEST(HotCommand, RanksRowsByValue) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 8 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const Result table = run_tt(folder, "hot a.ttrace --by layer --value time");
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* word : {"prompt", "generate", "disk", "hot: 1 of", "none"})
    EXPECT_TRUE(table.out.contains(word)) << word << "\n" << table.out;

  const Result result = run_tt(folder, "hot a.ttrace --json --limit 3 --hot 25 --value time");
  ASSERT_EQ(result.code, 0) << result.err;
  const json hot = json::parse(result.out);
  EXPECT_EQ(hot["by"], "tensor");
  EXPECT_EQ(hot["value"], "time");
  EXPECT_EQ(hot["rows"].size(), 3U);
  // Ranked by the median of a step, not by sums.
  EXPECT_GE(hot["rows"][0]["step_ns"]["median"], hot["rows"][1]["step_ns"]["median"]);
  const auto total = hot["total"].get<std::uint64_t>();
  // A group of equal times that the limit would divide is warm. Short ops may have equal times.
  const std::string note = hot["note"].is_null() ? "" : hot["note"].get<std::string>();
  EXPECT_TRUE(note.empty() || note.starts_with("The limit of ")) << note;
  if (note.contains("The limit of hot"))
    EXPECT_LT(hot["classes"]["hot"]["rows"], (total + 3) / 4);
  else
    EXPECT_EQ(hot["classes"]["hot"]["rows"], (total + 3) / 4);
}

// Expert 3 of layer 0 and expert 3 of layer 1 have nothing in common but the number.
TEST(HotCommand, RanksTheExpertsOfEachLayer) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe --layers 3 -q -o m.gguf").code, 0);
  ASSERT_EQ(
      run_tt(folder, "record -m m.gguf -p 'Once upon a time' -n 8 -t 1 --ignore-eos -o a.ttrace")
          .code,
      0);
  std::map<std::string, double> expected, found;
  const json sql = json::parse(
      run_tt(folder,
             "sql a.ttrace --json \"SELECT format('blk.%d expert %d', layer_id, expert_id), "
             "count(*) FROM access WHERE expert_id IS NOT NULL GROUP BY 1\"")
          .out);
  for (const json& row : sql["rows"]) expected[row[0]] = row[1];
  const json hot = json::parse(run_tt(folder, "hot a.ttrace --by expert --json --limit 1000").out);
  for (const json& row : hot["rows"])
    found[row["name"]] = row["all"]["reads"].get<double>() + row["all"]["writes"].get<double>();
  EXPECT_EQ(found, expected);
  EXPECT_GT(found.size(), 8U) << "more rows than a layer has experts";
  EXPECT_EQ(hot["total"], found.size());
}

// A dense model reads each weight once per token: the number of accesses says nothing, and layers
// have weights of equal sizes.
TEST(HotCommand, AnswersForWeightsAndDividesNoEqualRows) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 8 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const json hot = json::parse(run_tt(folder, "hot a.ttrace --json --limit 1000").out);
  EXPECT_EQ(hot["kind"], "weight");
  EXPECT_EQ(hot["value"], "bytes");
  EXPECT_TRUE(hot["note"].get<std::string>().contains("rows have equally many accesses"))
      << hot["note"];
  std::map<double, std::set<std::string>> classes;
  for (const json& row : hot["rows"]) {
    EXPECT_TRUE(row["name"].get<std::string>().ends_with(".weight")) << row["name"];
    classes[row["all"]["bytes_read"].get<double>()].insert(row["heat"]);
  }
  for (const auto& [bytes, heats] : classes) EXPECT_EQ(heats.size(), 1U) << bytes;
  double sum = 0;
  for (const json& row : hot["rows"]) sum += row["all"]["bytes_read"].get<double>();
  for (const char* kind : {"input", "kv", "intermediate"}) {
    EXPECT_GT(hot["other_kinds"][kind]["reads"], 0) << kind;
    sum += hot["other_kinds"][kind]["bytes_read"].get<double>();
  }
  EXPECT_NEAR(sum, hot["sums"]["all"]["bytes_read"].get<double>(), 1e-6 * sum);
  const std::string table = run_tt(folder, "hot a.ttrace").out;
  EXPECT_TRUE(table.contains(hot["note"].get<std::string>())) << table;
  EXPECT_TRUE(table.contains("not weights")) << table;
  const json by_accesses = json::parse(run_tt(folder, "hot a.ttrace --value reads --json").out);
  EXPECT_TRUE(by_accesses["note"].get<std::string>().contains("they are warm"))
      << by_accesses["note"];
  const json masks = json::parse(run_tt(folder, "hot a.ttrace --tensor mask --json").out);
  EXPECT_EQ(masks["kind"], nullptr);
  EXPECT_GT(masks["total"], 0);
}

TEST(HotCommand, JsonHasTheSumsOfTheTable) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 8 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const std::string table = run_tt(folder, "hot a.ttrace --layers 1-2").out;
  const json hot = json::parse(run_tt(folder, "hot a.ttrace --layers 1-2 --json").out);
  EXPECT_EQ(hot["damaged_steps"], 0);
  const std::pair<const char*, json> sums[] = {{"total", hot["sums"]["all"]},
                                               {"prompt", hot["sums"]["prompt"]},
                                               {"generate", hot["sums"]["generate"]},
                                               {"disk", hot["disk"]},
                                               {"buffers", hot["buffer"]}};
  for (const auto& [row, of] : sums) {
    SCOPED_TRACE(row);
    const std::size_t at = table.find(std::string("\n") + row + " ");
    ASSERT_NE(at, std::string::npos) << table;
    const std::string line = table.substr(at + 1, table.find('\n', at + 1) - at - 1);
    for (const std::string& figure :
         {format_bytes(of["bytes_read"]), format_bytes(of["bytes_written"]),
          std::to_string(of["reads"].get<std::int64_t>() + of["writes"].get<std::int64_t>()),
          format_duration(of["time_ns"])})
      EXPECT_TRUE(line.contains(" " + figure)) << figure << "\n" << line;
  }
  EXPECT_GT(hot["sums"]["prompt"]["bytes_read"], 0);
  EXPECT_EQ(hot["disk"]["reads"].get<double>() + hot["buffer"]["reads"].get<double>(),
            hot["sums"]["all"]["reads"].get<double>());
}

// Compares filtered sums with SQL.
TEST(HotCommand, FiltersAgreeWithSql) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon' -n 8 -t 1 --ignore-eos -o a.ttrace").code, 0);
  const struct {
    const char *options, *condition;
  } cases[] = {{"", "1"},
               {"--layers 1-2", "op_layer_id BETWEEN 1 AND 2"},
               {"--layers 0,outside", "op_layer_id = 0 OR op_layer_id IS NULL"},
               {"--source disk", "memory_source = 'disk'"},
               {"--kernel plain", "(step, op) IN (SELECT step, op FROM op WHERE kernel = 'plain')"},
               {"--kind weight --layers 3", "tensor_kind = 'weight' AND op_layer_id = 3"},
               {"--from-step 2 --to-step 5", "step >= 2 AND step < 5"},
               {"--from-step 6", "step >= 6"}};
  double before = 0;
  for (const auto& [options, condition] : cases) {
    SCOPED_TRACE(options);
    const Result hot = run_tt(folder, std::format("hot a.ttrace --by all --json {}", options));
    ASSERT_EQ(hot.code, 0) << hot.err;
    const json rows = json::parse(hot.out)["rows"];
    ASSERT_EQ(rows.size(), 1u);
    const Result sql = run_tt(
        folder,
        std::format("sql a.ttrace --json \"SELECT sum(CASE WHEN write THEN 0 ELSE size_bytes "
                    "END) FROM access WHERE {}\"",
                    condition));
    ASSERT_EQ(sql.code, 0) << sql.err;
    const double read = rows[0]["all"]["bytes_read"];
    EXPECT_NEAR(read, json::parse(sql.out)["rows"][0][0].get<double>(), 1e-6 * read);
    EXPECT_GT(read, 0);
    EXPECT_NE(read, before);
    before = read;
  }
  const Result token = run_tt(folder, "hot a.ttrace --by token --json --from-token 3 --to-token 5");
  EXPECT_EQ(json::parse(token.out)["rows"].size(), 2u) << token.out;
  const Result attention =
      run_tt(folder, "hot a.ttrace --by component --json --component attention");
  EXPECT_EQ(json::parse(attention.out)["rows"].size(), 1u) << attention.out;
  const Result missing = run_tt(folder, "hot a.ttrace --layers 99");
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.err.contains("The model has no layer 99")) << missing.err;
  const Result reversed = run_tt(folder, "hot a.ttrace --from-token 5 --to-token 3");
  EXPECT_EQ(reversed.code, 1);
  EXPECT_TRUE(reversed.err.contains("--from-token must not be greater than --to-token"))
      << reversed.err;
}

TEST(HotCommand, ErrorsHaveDistinctExitCodes) {
  const test::TempFolder folder;
  EXPECT_EQ(run_tt(folder, "hot none.ttrace --layers 3-x").code, 2);
  EXPECT_EQ(run_tt(folder, "hot none.ttrace --source moon").code, 2);
  EXPECT_EQ(run_tt(folder, "hot none.ttrace").code, 1);
  EXPECT_EQ(run_tt(folder, "hot none.ttrace --by file").code, 2);
  EXPECT_EQ(run_tt(folder, "hot none.ttrace --hot 101").code, 2);
}

}  // namespace
}  // namespace tt
