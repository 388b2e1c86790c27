// tt parse and tt show, as text and as JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "analysis/common/format_units.h"
#include "tests/cli/tt_program.h"
#include "tests/support/sessions/small_session.h"

namespace tt {
namespace {

using nlohmann::json;

class Parse : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        run_tt(folder, "record -p 'Once upon a time' -n 6 -t 1 --ignore-eos -o a.ttrace").code, 0);
  }
  const test::TempFolder folder;
};

TEST_F(Parse, ListsFirstAccessesOfLayer) {
  const Result text_result = run_tt(folder, "parse a.ttrace --layers 2 --limit 3");
  ASSERT_EQ(text_result.code, 0) << text_result.err;
  EXPECT_TRUE(text_result.out.contains("blk.2.attn_norm.weight")) << text_result.out;
  EXPECT_FALSE(text_result.out.contains("blk.1.")) << text_result.out;
  EXPECT_EQ(std::ranges::count(text_result.out, '\n'), 5) << text_result.out;  // head, rows, "more"

  const Result json_result = run_tt(folder, "parse a.ttrace --layers 2 --limit 3 --json");
  const json rows = json::parse(json_result.out)["accesses"];
  ASSERT_EQ(rows.size(), 3U);
  for (const json& row : rows) EXPECT_EQ(row["layer_id"], 2);
}

// Compares each filter with filtering all rows in the test.
TEST_F(Parse, FiltersRows) {
  const auto rows_of = [&](const std::string& options) {
    const Result result = run_tt(folder, "parse a.ttrace --json --limit 100000 " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out)["accesses"];
  };
  const json all = rows_of("");
  const auto expect = [&](const std::string& options, const auto& passes) {
    SCOPED_TRACE(options);
    json expected = json::array();
    for (const json& row : all)
      if (passes(row)) expected.push_back(row);
    EXPECT_GT(expected.size(), 0u);
    EXPECT_LT(expected.size(), all.size());
    EXPECT_EQ(rows_of(options), expected);
  };
  expect("--tensor ATTN_Q",
         [](const json& row) { return row["tensor_name"].get<std::string>().contains("attn_q"); });
  expect("--component ffn", [](const json& row) { return row["component"] == "ffn"; });
  expect("--kind kv", [](const json& row) { return row["tensor_kind"] == "kv"; });
  expect("--source disk", [](const json& row) { return row["memory_source"] == "disk"; });
  expect("--access write", [](const json& row) { return row["write"] == true; });
  for (const char* option : {"--layers 1,3-4", "--layer 1,3-4"})  // --layer is an alias
    expect(option, [](const json& row) {
      return row["layer_id"] == 1 || row["layer_id"] == 3 || row["layer_id"] == 4;
    });
  expect("--access read --layers 1 --source disk", [](const json& row) {
    return row["write"] == false && row["layer_id"] == 1 && row["memory_source"] == "disk";
  });
  for (const char* options :
       {"--from-step 2 --to-step 4", "--first-step 2 --last-step 3"})  // as in version 0.1
    expect(options, [](const json& row) { return row["step"] == 2 || row["step"] == 3; });
  expect("--phase prompt", [](const json& row) { return row["step"] == 0; });
  for (const char* empty : {"--from-step 3 --to-step 3", "--from-step 3 --last-step 2"})
    EXPECT_EQ(run_tt(folder, std::string("parse a.ttrace ") + empty).err,
              "tt parse: --from-step must be less than --to-step\n");
  EXPECT_EQ(run_tt(folder, "parse a.ttrace --from-step 1 --first-step 2").code, 2);
  EXPECT_EQ(run_tt(folder, "parse a.ttrace --stats --kind kv").code, 2);
}

TEST_F(Parse, RejectsUnknownLayers) {
  for (const char* none : {"parse a.ttrace --layers 99", "parse a.ttrace --stats --layers 99",
                           "graph a.ttrace --layers 0-99"}) {
    const Result result = run_tt(folder, none);
    EXPECT_EQ(result.code, 1) << none;
    EXPECT_TRUE(result.err.contains("The model has no layer 99")) << result.err;
  }
  const json rows = json::parse(
      run_tt(folder, "parse a.ttrace --layers outside --limit 9 --json").out)["accesses"];
  ASSERT_EQ(rows.size(), 9U);
  for (const json& row : rows) EXPECT_TRUE(row["layer_id"].is_null()) << row;
  EXPECT_EQ(run_tt(folder, "parse a.ttrace --layers x").code, 2);
}

TEST_F(Parse, AccessVerbsReportSessionWithoutAccesses) {
  ASSERT_EQ(run_tt(folder, "record -p Once -n 4 -t 1 --level minimal -o m.ttrace").code, 0);
  for (const char* verb : {"parse", "parse --stats", "hot", "hot --json", "reuse", "heads"}) {
    SCOPED_TRACE(verb);
    const Result minimal = run_tt(folder, std::string(verb) + " m.ttrace");
    EXPECT_EQ(minimal.code, 0);
    EXPECT_TRUE(minimal.err.contains("recorded at level minimal")) << minimal.err;
    EXPECT_EQ(run_tt(folder, std::string(verb) + " a.ttrace").err, "");
  }
  EXPECT_EQ(run_tt(folder, "heads m.ttrace --kv").code, 1);
  EXPECT_EQ(run_tt(folder, "reuse m.ttrace").out, "");
  EXPECT_TRUE(run_tt(folder, "reuse a.ttrace --sizes 1TiB").out.contains("\n1.00 TiB  "));
}

struct Sums {
  std::uint64_t accesses = 0, read = 0, written = 0;
  friend bool operator==(const Sums&, const Sums&) = default;
};
Sums sums_of(const json& line) {
  return {line["accesses"], line["bytes_read"], line["bytes_written"]};
}
using Groups = std::map<std::string, Sums>;
Groups groups_of(const json& lines) {
  Groups groups;
  for (const auto& [name, line] : lines.items()) groups[name] = sums_of(line);
  return groups;
}

// Sums over the rows.
struct Counted {
  Sums all;
  Groups phases, layers, components, sources, weights;
  std::set<std::string> layer_names;
  std::set<std::pair<std::uint64_t, std::uint64_t>> ops;
  explicit Counted(const json& rows) {
    for (const json& row : rows) {
      const auto add = [&](Sums& sums) {
        ++sums.accesses;
        (row["write"] ? sums.written : sums.read) += row["size_bytes"].get<std::uint64_t>();
      };
      const std::string layer = row["layer_id"].is_null() ? "none" : row["layer_id"].dump();
      add(all);
      add(layers[layer]);
      add(components[row["component"]]);
      add(sources[row["memory_source"]]);
      if (row["tensor_kind"] == "weight") add(weights[row["tensor_name"]]);
      ops.emplace(row["step"], row["op"]);
    }
  }
};

TEST_F(Parse, StatisticsAreTheSumsOfTheRows) {
  for (const std::string layer : {"", " --layers 2,4"}) {
    SCOPED_TRACE(layer);
    const json rows =
        json::parse(run_tt(folder, "parse a.ttrace --limit 1000000 --json" + layer).out);
    const Counted counted(rows["accesses"]);
    ASSERT_GT(counted.all.accesses, 200U);
    const Result json_result = run_tt(folder, "parse a.ttrace --stats --limit 1000 --json" + layer);
    ASSERT_EQ(json_result.code, 0) << json_result.err;
    const json stats = json::parse(json_result.out);
    EXPECT_EQ(sums_of(stats), counted.all);
    EXPECT_EQ(groups_of(stats["layers"]), counted.layers);
    EXPECT_EQ(groups_of(stats["components"]), counted.components);
    EXPECT_EQ(groups_of(stats["memory_sources"]), counted.sources);
    EXPECT_EQ(groups_of(stats["weights_with_most_bytes"]), counted.weights);
    EXPECT_EQ(stats["ops"], counted.ops.size());
    EXPECT_EQ(stats["distinct_tensors"]["weight"], counted.weights.size());
    EXPECT_EQ(stats["damaged_steps"], 0);
  }
}

TEST_F(Parse, StatisticsAgreeWithSql) {
  const auto ask = [&](const std::string& select) {
    const Result result = run_tt(folder, std::format("sql a.ttrace --json \"{}\"", select));
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out)["rows"];
  };
  const json stats = json::parse(run_tt(folder, "parse a.ttrace --stats --json").out);
  for (const auto& [column, name] :
       {std::pair{"phase", "phases"}, std::pair{"operation_type", "operation_types"}}) {
    Groups groups;
    for (const json& row : ask(std::format("SELECT {0}, count(*), sum(size_bytes * (1 - write)), "
                                           "sum(size_bytes * write) FROM access GROUP BY {0}",
                                           column)))
      groups[row[0]] = {row[1], row[2], row[3]};
    EXPECT_EQ(groups_of(stats[name]), groups) << column;
  }
  const json steps = ask("SELECT count(*), sum(token_count), sum(end_ns - begin_ns) FROM step")[0];
  EXPECT_EQ(stats["steps"], steps[0]);
  EXPECT_EQ(stats["tokens_evaluated"], steps[1]);
  EXPECT_EQ(stats["step_ns"], steps[2]);
  EXPECT_EQ(stats["ops"], ask("SELECT count(*) FROM op")[0][0]);
  EXPECT_EQ(stats["distinct_weight_bytes"],
            ask("SELECT sum(tensor_bytes) FROM (SELECT DISTINCT tensor_name, tensor_bytes FROM "
                "access WHERE tensor_kind = 'weight')")[0][0]);
}

TEST_F(Parse, PrintsStatisticsTables) {
  const Result text_result = run_tt(folder, "parse a.ttrace --stats --limit 2");
  ASSERT_EQ(text_result.code, 0) << text_result.err;
  for (const char* text :
       {"steps, ", "tokens evaluated", "distinct tensors: ", "phase", "generate", "layer",
        "MUL_MAT", "component", "ffn", "source", "disk", "more (use --limit N)"})
    EXPECT_TRUE(text_result.out.contains(text)) << text << " is not in\n" << text_result.out;
  EXPECT_EQ(run_tt(folder, "parse a.ttrace --stats --validate").code, 2);
}

TEST_F(Parse, ValidRecordingPassesEveryCheck) {
  const Result text_result = run_tt(folder, "parse a.ttrace --validate");
  EXPECT_EQ(text_result.code, 0) << text_result.out << text_result.err;
  EXPECT_TRUE(text_result.out.contains("The recording is valid.")) << text_result.out;
  const json checks = json::parse(run_tt(folder, "parse a.ttrace --validate --json").out);
  EXPECT_TRUE(checks["passed"]);
  for (const json& check : checks["checks"]) {
    const bool dense = check["check"] == "experts";  // this model has none
    EXPECT_EQ(check["verdict"], dense ? "not_applicable" : "passed") << check;
  }
}

TEST_F(Parse, DamagedRecordingFailsValidation) {
  {
    std::fstream file(folder / "a.ttrace", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0, std::ios::end);
    file.seekp(static_cast<std::streamoff>(file.tellp()) - 600);  // a cell is at the end of a page
    file << std::string(64, 'x');
  }
  const Result result = run_tt(folder, "parse a.ttrace --validate");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.out.contains("NOT valid")) << result.out << result.err;
  EXPECT_TRUE(result.out.contains("file         FAILED")) << result.out;
}

// What the recorder lost is missing; the rest is valid.
TEST(Show, NamesWhatIsMissingFromAValidRecording) {
  SessionInfo info = test::SmallSession::small_info();
  info.model_files = {{.path = "small.gguf", .size = 6000, .mtime_ns = 0, .header_hash = {}}};
  const test::SmallSession session({test::small_step(0)}, info, test::small_graph(),
                                   {.steps_without_times = 77});
  const test::TempFolder folder;
  std::filesystem::copy_file(session.path, folder / "small.ttrace");
  const std::string verdict = "valid, times of 77 steps missing";
  const Result shown = run_tt(folder, "show small.ttrace");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(shown.out.contains("verdict    " + verdict + "\n")) << shown.out;
  EXPECT_EQ(json::parse(run_tt(folder, "show small.ttrace --json").out)["verdict"], verdict);
  const Result checked = run_tt(folder, "parse small.ttrace --validate");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_TRUE(checked.out.contains("losses       missing")) << checked.out;
  EXPECT_TRUE(checked.out.contains("The recording is " + verdict + ".\n")) << checked.out;
  const json checks = json::parse(run_tt(folder, "parse small.ttrace --validate --json").out);
  EXPECT_EQ(checks["verdict"], verdict);
  EXPECT_EQ(checks["checks"][1]["verdict"], "incomplete");
}

TEST_F(Parse, ShowPrintsSessionSummary) {
  const Result text_result = run_tt(folder, "show a.ttrace");
  ASSERT_EQ(text_result.code, 0) << text_result.err;
  for (const char* text :
       {"Once upon a time", "pocket.gguf", "6 layers", "prompt", "generate", "verdict    valid\n"})
    EXPECT_TRUE(text_result.out.contains(text)) << text << " is not in\n" << text_result.out;
  EXPECT_FALSE(text_result.out.contains("request.temperature"));
  EXPECT_TRUE(run_tt(folder, "show a.ttrace --facts").out.contains("request.temperature"));
  const json shown = json::parse(run_tt(folder, "show a.ttrace --json").out);
  EXPECT_EQ(shown["state"], "done");
  EXPECT_EQ(shown["n_layers"], 6);
}

TEST_F(Parse, ShowSaysWhatTheTimeWasSpentOn) {
  const json spent = json::parse(run_tt(folder, "show a.ttrace --json").out)["conditions"]["spent"];
  EXPECT_GE(spent["graphs_built"], 2) << "a prompt, then single tokens";
  EXPECT_EQ(spent["total_ns"].get<std::uint64_t>(),
            spent["sample_ns"].get<std::uint64_t>() + spent["detokenize_ns"].get<std::uint64_t>() +
                spent["build_ns"].get<std::uint64_t>() + spent["evaluate_ns"].get<std::uint64_t>() +
                spent["other_ns"].get<std::uint64_t>());
  const std::string text = run_tt(folder, "show a.ttrace").out;
  EXPECT_TRUE(text.contains(
      std::format("time       evaluation {:.1f} %",
                  100 * spent["evaluate_ns"].get<double>() / spent["total_ns"].get<double>())))
      << text;
}

TEST_F(Parse, ShowSaysWhatLoadingTookAndWhatTheContextNeeds) {
  const std::string text = run_tt(folder, "show a.ttrace").out;
  EXPECT_TRUE(text.contains("loaded     ")) << text;
  EXPECT_TRUE(text.contains("context    KV cache ")) << text;
  EXPECT_TRUE(text.contains(", logits ")) << text;
  const json shown = json::parse(run_tt(folder, "show a.ttrace --json").out);
  EXPECT_TRUE(run_tt(folder, "show a.ttrace --facts")
                  .out.contains(std::format("{:<32} {}\n", "result.logits_bytes",
                                            4 * shown["n_vocab"].get<std::uint64_t>())));
}

// Recorded beside other programs or not: the sums are those of all steps.
TEST_F(Parse, ShowCleanLeavesDisturbedStepsOut) {
  const json all = json::parse(run_tt(folder, "show a.ttrace --json").out);
  const Result result = run_tt(folder, "show a.ttrace --clean");
  ASSERT_EQ(result.code, 0) << result.err;
  const json clean = json::parse(run_tt(folder, "show a.ttrace --clean --json").out);
  EXPECT_EQ(clean["conditions"], all["conditions"]);
  EXPECT_TRUE(result.out.contains("machine    " + all["conditions"]["text"].get<std::string>()))
      << result.out;
  std::uint64_t left_out = 0;
  for (const auto& [phase, of] : clean["phases"].items()) {
    const json& before = all["phases"][phase];
    EXPECT_EQ(of["duration_ns"], before["duration_ns"]);
    EXPECT_EQ(before["left_out_steps"], 0);
    const auto out = of["left_out_steps"].get<std::uint64_t>();
    EXPECT_EQ(of["normal_steps"].get<std::uint64_t>() + out, before["normal_steps"]);
    left_out += out;
  }
  EXPECT_EQ(result.out.contains("that were not clean (--clean)"), left_out > 0) << result.out;
  EXPECT_TRUE(result.out.contains("with a new graph, which the recording slowed down"))
      << result.out;
}

// The lines of a text with runs of spaces replaced by one space.
std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    lines.insert(joined);
  }
  return lines;
}

TEST_F(Parse, ShowJsonMatchesText) {
  const std::string text_result = run_tt(folder, "show a.ttrace").out;
  const auto lines = lines_of(text_result);
  const json shown = json::parse(run_tt(folder, "show a.ttrace --json").out);
  ASSERT_EQ(shown["phases"].size(), 2U) << shown;
  std::uint64_t steps = 0;
  for (const auto& [phase, of] : shown["phases"].items()) {
    const double ns = of["duration_ns"], tokens = of["tokens"];
    std::string spread;  // all steps of the prompt may be learned
    if (const json& times = of["step_ns"]; !times.is_null())
      for (const char* value : {"median", "p5", "p95"})
        spread += " " + format_duration(times[value].get<double>());
    EXPECT_TRUE(lines.contains(
        std::format("{} {} {} {} {} {:.1f}{}", phase, of["steps"].dump(), of["tokens"].dump(),
                    format_duration(ns), format_duration(ns / tokens), tokens * 1e9 / ns, spread)))
        << of << text_result;
    steps += of["steps"].get<std::uint64_t>();
  }
  EXPECT_EQ(steps, shown["steps"]);
  ASSERT_FALSE(shown["templates"].empty()) << shown;
  for (const json& graph : shown["templates"])
    EXPECT_TRUE(lines.contains(std::format(
        "{} {} {} {} {} {}", graph["template"].dump(), graph["steps"].dump(), graph["ops"].dump(),
        graph["nodes"].dump(), graph["tensors"].dump(), graph["layers"].dump())))
        << graph << text_result;
  EXPECT_NE(shown["answer"], "");
  EXPECT_TRUE(text_result.ends_with("\nanswer\n" + shown["answer"].get<std::string>() + "\n"))
      << text_result;
}

TEST_F(Parse, RejectsFilesThatAreNotSessions) {
  std::ofstream(folder / "none.ttrace") << "no session";
  for (const char* command : {"parse", "parse --stats", "parse --validate", "show"}) {
    const Result none = run_tt(folder, std::string(command) + " none.ttrace");
    EXPECT_EQ(none.code, 1) << command;
    EXPECT_TRUE(none.err.starts_with("tt ")) << none.err;
    EXPECT_EQ(run_tt(folder, std::string(command) + " gone.ttrace").code, 1);
  }
}

}  // namespace
}  // namespace tt
