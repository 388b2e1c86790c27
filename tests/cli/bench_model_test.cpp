// tt bench-model: formats of a real measurement, comparisons of files, and error messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/json/json.h"
#include "tests/cli/tt_program.h"
#include "tracer/format/file/session_reader.h"

namespace tt {
namespace {

// Two tests on the bundled model, as fast as they can be.
constexpr const char* kQuick = "-p 32 -n 16 --block-ms 0 -t 1";

Json parsed(const std::string& text) { return Json::parse(text, nullptr, false); }

// The field names of llama-bench -o json.
const std::set<std::string> kLlamaBench = {"build_commit",   "build_number",
                                           "cpu_info",       "gpu_info",
                                           "backends",       "model_filename",
                                           "model_type",     "model_size",
                                           "model_n_params", "n_batch",
                                           "n_ubatch",       "n_threads",
                                           "cpu_mask",       "cpu_strict",
                                           "poll",           "type_k",
                                           "type_v",         "n_gpu_layers",
                                           "n_cpu_moe",      "split_mode",
                                           "main_gpu",       "no_kv_offload",
                                           "flash_attn",     "devices",
                                           "tensor_split",   "tensor_buft_overrides",
                                           "use_mmap",       "use_direct_io",
                                           "embeddings",     "no_op_offload",
                                           "n_prompt",       "n_gen",
                                           "n_depth",        "test_time",
                                           "avg_ns",         "stddev_ns",
                                           "avg_ts",         "stddev_ts",
                                           "samples_ns",     "samples_ts"};

TEST(BenchModel, MeasuresWithColumnsOfLlamaBench) {
  const test::TempFolder folder;
  const Result result = run_tt(folder, std::format("bench-model {} -r 2 -o json", kQuick));
  ASSERT_EQ(result.code, 0) << result.err;
  const Json rows = parsed(result.out);
  ASSERT_EQ(rows.size(), 2U) << result.out;
  for (const Json& row : rows) {
    SCOPED_TRACE(row.dump());
    for (const std::string& name : kLlamaBench) EXPECT_TRUE(row.contains(name)) << name;
    // 2 rounds, each with 2 blocks of 2 contexts, and 2 recorded blocks.
    EXPECT_EQ(row["samples_ns"].size(), 8U);
    EXPECT_EQ(row["recorded_samples_ns"].size(), 4U);
    EXPECT_EQ(row["quiet_samples_ns"].size(), 8U);
    EXPECT_EQ(row["rounds"], 2);
    double sum = 0, speeds = 0;
    for (const Json& ns : row["samples_ns"]) sum += ns.get<double>();
    for (const Json& ts : row["samples_ts"]) speeds += ts.get<double>();
    EXPECT_NEAR(row["avg_ns"].get<double>(), sum / 8, 1);
    EXPECT_NEAR(row["avg_ts"].get<double>(), speeds / 8, 1e-3);
    EXPECT_GE(row["noise"].get<double>(), 0.005);
    EXPECT_GT(row["recording_ratio"].get<double>(), 0.1);
    EXPECT_LE(row["p5_ts"], row["median_ts"]);
    EXPECT_LE(row["median_ts"], row["p95_ts"]);
    // As in the table: the speed in the median time. Of 8 samples, the fourth.
    std::vector<double> times = row["samples_ns"];
    std::ranges::sort(times);
    const double tokens = row["n_prompt"].get<double>() + row["n_gen"].get<double>();
    EXPECT_NEAR(row["median_ts"].get<double>(), tokens * 1e9 / times[3],
                1e-5 * row["median_ts"].get<double>());
    // The op kinds of a run fit into the time of a run.
    double share = 0, ns = 0;
    std::set<std::string> ops;
    for (const Json& op : row["ops"]) {
      share += op["share"].get<double>();
      ns += op["median_ns"].get<double>();
      ops.insert(op["op"].get<std::string>());
      EXPECT_EQ(op["samples_ns"].size(), 4U);
      EXPECT_EQ(op["quiet_samples_ns"].size(), 4U);
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_LT(ns, row["avg_ns"].get<double>() * 3);
    EXPECT_TRUE(ops.contains("MUL_MAT"));
  }
  EXPECT_EQ(rows[0]["n_prompt"], 32);
  EXPECT_EQ(rows[1]["n_gen"], 16);
}

TEST(BenchModel, PrintsTablesAndOtherFormats) {
  const test::TempFolder folder;
  const Result table = run_tt(folder, "bench-model -p 0 -n 8 -r 1 --block-ms 0 -t 1");
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* part :
       {"model    ", "machine  ", "tg8", "recording takes", "op, tg8", "MUL_MAT"})
    EXPECT_TRUE(table.out.contains(part)) << part << table.out;
  EXPECT_FALSE(table.out.contains("pp"));
  const Result markdown = run_tt(folder, "bench-model -p 8 -n 0 -r 1 --block-ms 0 -t 1 -o md");
  EXPECT_TRUE(markdown.out.contains("| pp8 |")) << markdown.out;

  // Read by other programs: one row per test, with the same columns.
  for (const char* format : {"csv", "sql", "jsonl"}) {
    const Result result = run_tt(folder, std::format("bench-model {} -r 1 -o {}", kQuick, format));
    ASSERT_EQ(result.code, 0) << result.err;
    std::ofstream(folder.path() / std::format("a.{}", format)) << result.out;
  }
  std::ofstream(folder / "read.py") << R"(
import csv, json, sqlite3
rows = list(csv.DictReader(open('a.csv')))
db = sqlite3.connect(':memory:')
db.executescript(open('a.sql').read())
db.row_factory = sqlite3.Row
table = [dict(row) for row in db.execute('SELECT * FROM llama_bench')]
lines = [json.loads(line) for line in open('a.jsonl')]
for read in (rows, table, lines):
    assert [(int(r['n_prompt']), int(r['n_gen'])) for r in read] == [(32, 0), (0, 16)], read
    for row in read:
        assert float(row['avg_ts']) > 0 and row['model_filename'].endswith('.gguf'), row
assert list(rows[0]) == list(table[0])
assert set(rows[0]) < set(lines[0])
assert isinstance(table[0]['avg_ns'], int) and isinstance(table[0]['avg_ts'], float)
)";
  const std::string read = std::format("cd {} && python3 read.py 2>&1", folder.path().string());
  EXPECT_EQ(std::system(read.c_str()), 0);
}

// A file as a measurement of 7 rounds writes it. Times differ by 1 % from round to round.
// `mul_mat`: how long MUL_MAT takes, 80 % of a run of 100 ms.
Json measured(double mul_mat, double seed) {
  Json samples = Json::array(), slow = Json::array(), others = Json::array();
  for (int i = 0; i < 28; ++i) {
    const double machine = 1 + 0.01 * std::sin(seed + i / 4) + 0.001 * std::cos(seed * i);
    samples.push_back(std::llround((80 * mul_mat + 20) * 1e6 * machine));
    if (i % 2 == 0) continue;
    slow.push_back(std::llround(80 * mul_mat * 1e6 * machine));
    others.push_back(std::llround(20 * 1e6 * machine));
  }
  return Json::array({{{"n_prompt", 0},
                       {"n_gen", 128},
                       {"rounds", 7},
                       {"samples_ns", samples},
                       {"ops",
                        {{{"op", "MUL_MAT"}, {"count", 128}, {"samples_ns", slow}},
                         {{"op", "FLASH_ATTN_EXT"}, {"count", 128}, {"samples_ns", others}}}}}});
}

TEST(BenchModel, ComparesFilesAndNamesTheSlowOp) {
  const test::TempFolder folder;
  std::ofstream(folder / "a.json") << measured(1, 1);
  std::ofstream(folder / "b.json") << measured(1, 2);
  std::ofstream(folder / "slow.json") << measured(1.05, 3);
  const Result equal = run_tt(folder, "bench-model --compare a.json b.json");
  EXPECT_EQ(equal.code, 0) << equal.err;
  EXPECT_TRUE(equal.out.contains("no significant difference")) << equal.out;
  EXPECT_FALSE(equal.out.contains("MUL_MAT")) << equal.out;
  const Result slower = run_tt(folder, "bench-model --compare a.json slow.json");
  EXPECT_TRUE(slower.out.contains(" slower ")) << slower.out;
  EXPECT_TRUE(slower.out.contains("MUL_MAT +")) << slower.out;
  EXPECT_FALSE(slower.out.contains("FLASH_ATTN_EXT")) << slower.out;
  const Json faster = parsed(run_tt(folder, "bench-model --compare slow.json a.json --json").out);
  ASSERT_EQ(faster.size(), 1U);
  EXPECT_EQ(faster[0]["verdict"], "faster");
  EXPECT_NEAR(faster[0]["ratio"].get<double>(), 1 / 1.04, 0.01);
  EXPECT_EQ(faster[0]["ops"][0]["op"], "MUL_MAT");
  EXPECT_EQ(faster[0]["ops"][0]["change"]["verdict"], "faster");
  EXPECT_EQ(faster[0]["ops"][1]["change"]["verdict"], "no significant difference");
}

// A comparison answers which program is faster only if nothing else differs.
TEST(BenchModel, RefusesToCompareWhatIsNotComparable) {
  const test::TempFolder folder;
  Json facts = {{"model_type", "llama 1B Q4_K"},
                {"model_size", 100},
                {"cpu_info", "A"},
                {"n_threads", 2},
                {"type_k", "f16"},
                {"flash_attn", "auto"},
                {"machine", "clean"}};
  const auto write = [&](const char* name, const char* field, const Json& value) {
    Json rows = measured(1, 1);
    rows[0].update(facts);
    if (field != nullptr) rows[0][field] = value;
    std::ofstream(folder / name) << rows;
  };
  write("a.json", nullptr, {});
  write("same.json", nullptr, {});
  EXPECT_EQ(run_tt(folder, "bench-model --compare a.json same.json").code, 0);
  const std::pair<const char*, Json> others[] = {{"model_type", "llama 1B Q8_0"},
                                                 {"model_size", 101},
                                                 {"cpu_info", "B"},
                                                 {"n_threads", 4},
                                                 {"type_k", "q8_0"},
                                                 {"flash_attn", "off"},
                                                 {"machine", "contended"}};
  for (const auto& [field, value] : others) {
    SCOPED_TRACE(field);
    write("b.json", field, value);
    const Result refused = run_tt(folder, "bench-model --compare a.json b.json");
    EXPECT_EQ(refused.code, 1);
    EXPECT_TRUE(refused.out.empty()) << refused.out;
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    EXPECT_TRUE(refused.err.contains(shown) && refused.err.contains("--force")) << refused.err;
    const Result forced = run_tt(folder, "bench-model --compare a.json b.json --force");
    EXPECT_EQ(forced.code, 0) << forced.err;
    EXPECT_TRUE(forced.err.contains(shown)) << forced.err;
  }
}

// Files of llama-bench have samples only.
TEST(BenchModel, ComparesFilesOfLlamaBench) {
  const test::TempFolder folder;
  const auto write = [&](const char* name, const char* samples) {
    std::ofstream(folder / name) << std::format(
        R"([{{"n_prompt": 512, "n_gen": 0, "avg_ns": 1, "samples_ns": [{}]}}])", samples);
  };
  write("a.json", "1000, 1001, 1003, 1002, 1004");
  write("b.json", "1100, 1101, 1103, 1102, 1104");
  const Result result = run_tt(folder, "bench-model --compare a.json b.json");
  EXPECT_TRUE(result.out.contains("slower")) << result.out << result.err;
  EXPECT_TRUE(run_tt(folder, "bench-model --compare a.json a.json")
                  .out.contains("no significant difference"));
}

// The recordings of the rounds are a set of sessions, as those of tt record --repeat. SQLite adds
// up what the files contain; the numbers of steps follow from -p, -n and -r.
TEST(BenchModel, KeepsTheRecordingsAsSets) {
  const test::TempFolder folder;
  const std::string command =
      "bench-model -p 16 -n 4 -r 6 --block-ms 0 -t 1 --against '-ctk q8_0 -fa on' "
      "--sessions runs --json";
  const Result measured = run_tt(folder, command);
  ASSERT_EQ(measured.code, 0) << measured.err;
  const Json tests = parsed(measured.out)["tests"];
  for (const char* set : {"given", "against"}) {
    SCOPED_TRACE(set);
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "runs" / set)) {
      names.insert(entry.path().filename());
      EXPECT_TRUE(check_session(entry.path()).value().empty()) << entry.path();
    }
    EXPECT_EQ(names, (std::set<std::string>{"run-01.ttrace", "run-02.ttrace", "run-03.ttrace",
                                            "run-04.ttrace", "run-05.ttrace", "run-06.ttrace"}));
    // A block has at least 64 tokens: 4 runs of pp16, 16 of tg4; two blocks and the warm-up.
    const Json rows =
        parsed(run_tt(folder, std::format("sql 'runs/{}/*.ttrace' \"SELECT session, "
                                          "sum(phase = 'prompt'), sum(phase = 'generate'), "
                                          "sum(token_count) FROM step GROUP BY session\" --json",
                                          set))
                   .out)["rows"];
    ASSERT_EQ(rows.size(), 6U);
    for (const Json& row : rows) {
      EXPECT_EQ(row[1], 2 * 4 + 1) << row;
      EXPECT_EQ(row[2], (2 * 16 + 1) * 4) << row;
      EXPECT_EQ(row[3], (2 * 4 + 1) * 16 + (2 * 16 + 1) * 4) << row;
    }
  }
  // Nothing is left of the folder in which they were recorded.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "runs"), {}), 2);
  // tt bench-model computed the times of op kinds from these files: steps of the two recorded
  // blocks.
  std::vector<double> samples = tests[1]["ops"][0]["samples_ns"];
  ASSERT_EQ(samples.size(), 12U);
  // The setting that differs is named, and the bytes of a quantized cache are fewer.
  const Json compared = parsed(run_tt(folder, "compare runs/given runs/against --json").out);
  EXPECT_EQ(compared["left_sessions"], 6);
  EXPECT_EQ(compared["right_sessions"], 6);
  std::set<std::string> facts;
  for (const Json& fact : compared["facts"]) facts.insert(fact["name"].get<std::string>());
  EXPECT_TRUE(facts.contains("context.cache_type_k")) << compared["facts"];
  const auto bytes = std::ranges::find_if(compared["figures"], [](const Json& of) {
    return of["name"] == "bytes read per generated token";
  });
  ASSERT_NE(bytes, compared["figures"].end()) << compared;
  EXPECT_LT((*bytes)["ratio"].get<double>(), 1);
  EXPECT_TRUE((*bytes)["different"].get<bool>());
  const Result trend = run_tt(folder, "trend runs/given --by session");
  EXPECT_EQ(trend.code, 0) << trend.err;

  const Result again = run_tt(folder, command);
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(again.err.contains("run-01.ttrace already exists")) << again.err;
  const Result one =
      run_tt(folder, "bench-model -p 0 -n 1 -r 1 --block-ms 0 -t 1 --sessions runs/given --force");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "runs/given"), {}), 6);
}

TEST(BenchModel, MeasuresTwoConfigurationsInTurns) {
  const test::TempFolder folder;
  const Result result = run_tt(
      folder, "bench-model -p 16 -n 0 -r 1 --block-ms 0 -t 1 --against '-ub 8 -fa off' --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = parsed(result.out);
  ASSERT_EQ(json["tests"].size(), 2U) << result.out;
  EXPECT_EQ(json["tests"][0]["n_threads"], 1);
  EXPECT_EQ(json["tests"][0]["configuration"], "as given");
  EXPECT_EQ(json["tests"][1]["n_threads"], 1);
  EXPECT_EQ(json["tests"][1]["flash_attn"], "off");
  EXPECT_EQ(json["tests"][1]["n_ubatch"], 8);
  EXPECT_EQ(json["tests"][1]["configuration"], "-ub 8 -fa off");
  ASSERT_EQ(json["comparison"].size(), 1U);
  EXPECT_TRUE(json["comparison"][0]["low"].is_null());  // one round is too few
  EXPECT_EQ(json["comparison"][0]["verdict"], "no significant difference");
}

// Threads that wait for each other on a busy machine take a hundred times as long.
TEST(BenchModel, EndsInBoundedTimeOnABusyMachine) {
  const test::TempFolder folder;
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  const auto began = std::chrono::steady_clock::now();
  const Result result =
      run_tt(folder,
             "bench-model -p 4 -n 2 -r 1000 --block-ms 0 -t 2 --against '-fa off' "
             "--max-seconds 2 --json");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  EXPECT_TRUE(result.err.contains("stopped after 2 s (--max-seconds) with ")) << result.err;
  // The complete rounds, or none.
  if (result.code == 1) {
    EXPECT_TRUE(result.err.contains(" with 0 of 1000 rounds.")) << result.err;
    return;
  }
  ASSERT_EQ(result.code, 0) << result.err;
  for (const Json& test : parsed(result.out)["tests"]) {
    EXPECT_GE(test["rounds"], 1);
    EXPECT_LT(test["rounds"], 1000);
  }
}

TEST(BenchModel, ReportsErrors) {
  const test::TempFolder folder;
  std::ofstream(folder / "text.json") << "hello";
  std::ofstream(folder / "empty.json") << "[]";
  std::ofstream(folder / "zero.json") << R"([{"n_prompt": 1, "n_gen": 0, "samples_ns": [0]}])";
  std::ofstream(folder / "object.json") << R"({"tests": []})";
  std::ofstream(folder / "a.json") << measured(1, 1);
  struct Case {
    const char* arguments;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {"-p 0 -n 0", 2, "there is nothing to measure: -p and -n are 0"},
      {"none.gguf", 1, "none.gguf"},
      {"text.json -p 8 -n 0 -r 1", 1, "text.json"},
      {"--compare a.json none.json", 1, "none.json cannot be read: No such file"},
      {"--compare a.json", 2, "--compare"},
      {"--compare a.json text.json", 1,
       "text.json is not a result of tt bench-model -o json (nor of llama-bench): it is not valid "
       "JSON"},
      {"--compare a.json object.json", 1, "object.json is not a result of tt bench-model"},
      {"--compare a.json zero.json", 1, "zero.json has a test without"},
      {"--compare a.json empty.json", 1, "no test in common"},
      {"--compare a.json a.json --against '-t 1'", 2, "--against"},
      {"--against '-t many' -r 1", 2, "--threads"},
      {"--against '--nosuch' -r 1", 2, "--nosuch"},
      {"-o yaml", 2, "--output"},
      {"-n 100000000", 2, "--n-gen"},
      {"--memory-budget 1GiB", 2, "--memory-budget"},
      {"--sessions a.json -r 1", 1, "a.json is not a folder"},
      {"--compare a.json a.json --sessions b", 2, "--sessions"},
      {"--access-pattern a.json", 2, "--access-pattern"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Result result = run_tt(folder, std::string("bench-model ") + c.arguments);
    EXPECT_EQ(result.code, c.code) << result.err;
    EXPECT_TRUE(result.err.contains(c.message)) << result.err;
    EXPECT_TRUE(result.err.starts_with("tt bench-model")) << result.err;
    EXPECT_TRUE(result.out.empty()) << result.out;
  }
}

}  // namespace
}  // namespace tt
