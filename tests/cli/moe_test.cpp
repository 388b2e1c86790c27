// tt moe, tt gguf and tt heads, as tables and as JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tracer/modelgen/model_writer.h"

namespace tt {
namespace {

using nlohmann::json;

void record_story(const test::TempFolder& folder, const std::string& options) {
  const Result result = run_tt(
      folder, "record " + options + " -p 'Once upon a time' -n 6 -t 1 --ignore-eos -o a.ttrace");
  ASSERT_EQ(result.code, 0) << result.err;
}

TEST(MoeCommand, ReportsExpertUse) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe -o m.gguf").code, 0);
  record_story(folder, "-m m.gguf");
  const json moe = run_json(folder, "moe a.ttrace");
  ASSERT_EQ(moe["routers"].size(), 8U);
  const json& router = moe["routers"][3];
  EXPECT_EQ(router["experts"], 8);
  EXPECT_EQ(router["per_token"], 2);
  EXPECT_EQ(router["choices"].get<int>(), 2 * router["tokens"].get<int>());
  EXPECT_GT(router["entropy_bits"], 0.0);
  EXPECT_LE(router["entropy_bits"], 3.0);
  ASSERT_EQ(moe["pinning"]["curve"].size(), 10U);
  // A cache for all experts saves everything except the first reads.
  EXPECT_EQ(moe["pinning"]["curve"][9]["lru_saved"].get<std::uint64_t>(),
            moe["pinning"]["expert_bytes_read"].get<std::uint64_t>() -
                moe["pinning"]["expert_bytes_distinct"].get<std::uint64_t>());

  const json layer = run_json(folder, "moe a.ttrace --layers 3");
  EXPECT_EQ(layer["choices"], router["choices"]);
  EXPECT_FALSE(layer["pairs"].empty());
  // One line per layer.
  const std::string one = run_tt(folder, "moe a.ttrace --json --layers 3").out;
  EXPECT_EQ(run_tt(folder, "moe a.ttrace --json --layer 2-3").out,
            run_tt(folder, "moe a.ttrace --json --layers 2").out + one);
  EXPECT_EQ(std::ranges::count(run_tt(folder, "moe a.ttrace --json --layers all").out, '\n'),
            static_cast<std::ptrdiff_t>(moe["routers"].size()));
  const json generated = run_json(folder, "moe a.ttrace --phase generate");
  EXPECT_EQ(generated["routers"][3]["tokens"], 5);

  const Result table = run_tt(folder, "moe a.ttrace --sizes 100KB");
  EXPECT_EQ(table.code, 0);
  EXPECT_TRUE(table.out.contains("turnover")) << table.out;
  EXPECT_TRUE(table.out.contains("Pinning would")) << table.out;
  const Result detail = run_tt(folder, "moe a.ttrace --layers 3");
  EXPECT_EQ(detail.code, 0);
  EXPECT_TRUE(detail.out.contains("times chosen/times seen")) << detail.out;
  EXPECT_EQ(run_tt(folder, "moe a.ttrace --layers 8").code, 1);
  EXPECT_EQ(run_tt(folder, "moe a.ttrace --phase lunch").code, 2);
}

// Against SQL, and the sizes of the weights in the file.
TEST(MoeCommand, CountsExpertsThatCarryTheUseAndSlotsOfABudget) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe -o m.gguf").code, 0);
  record_story(folder, "-m m.gguf");
  const json moe = run_json(folder, "moe a.ttrace --budget 64MiB");
  std::map<int, std::vector<int>> uses;
  const json counts = run_json(folder,
                               "sql a.ttrace \"SELECT layer_id, count(*) FROM expert GROUP BY "
                               "layer_id, expert_id ORDER BY count(*) DESC\"");
  for (const json& row : counts["rows"]) uses[row[0]].push_back(row[1]);
  for (const int percent : {90, 95, 99}) {
    std::vector<int> all;
    for (const json& router : moe["routers"]) {
      const auto& layer = uses[router["layer"]];
      int sum = 0, experts = 0;
      for (const int use : layer) {
        if (100 * sum >= percent * router["choices"].get<int>()) break;
        sum += use;
        ++experts;
      }
      EXPECT_EQ(router["experts_for_percent"][std::to_string(percent)], experts);
      all.push_back(experts);
    }
    std::ranges::sort(all);
    const json& of = moe["experts_for_percent"][std::to_string(percent)];
    EXPECT_EQ(of["least"], all.front());
    EXPECT_EQ(of["most"], all.back());
    EXPECT_EQ(of["median"].get<double>(), (all[3] + all[4]) / 2.0);
  }
  const json bytes = run_json(folder,
                              "sql a.ttrace \"SELECT sum(tensor_bytes) / 8 FROM (SELECT DISTINCT "
                              "tensor_name, tensor_bytes FROM tensor WHERE tensor_name LIKE "
                              "'%_exps.weight')\"");
  EXPECT_EQ(moe["budget"]["slots_per_layer"],
            (64U << 20U) / bytes["rows"][0][0].get<std::uint64_t>());
  EXPECT_GT(moe["budget"]["slots_per_layer"], 0);
  const Result table = run_tt(folder, "moe a.ttrace --budget 64MiB");
  EXPECT_TRUE(table.out.contains("A budget of 64.0 MiB buys")) << table.out;
}

// A difference of two shares is in percentage points.
TEST(MoeCommand, GainOfPinningIsInPercentagePoints) {
  std::size_t gains = 0;
  for (const float skew : {1.0F, 8.0F}) {
    SCOPED_TRACE(skew);
    const test::TempFolder folder;
    modelgen::ModelSpec spec;
    spec.shape = "moe";
    spec.dims.layers = 3;
    spec.router_skew = skew;
    ASSERT_TRUE(modelgen::write_model(spec, folder / "m.gguf").has_value());
    record_story(folder, "-m m.gguf");
    const json pinning = run_json(folder, "moe a.ttrace")["pinning"];
    double best = 0;
    for (const json& point : pinning["curve"]) {
      best = std::max(
          best, point["tried_pinned_saved"].get<double>() - point["tried_lru_saved"].get<double>());
    }
    const std::string text = run_tt(folder, "moe a.ttrace").out;
    const double points = 100 * best / pinning["expert_bytes_tried"].get<double>();
    EXPECT_EQ(text.contains(std::format("saves {:.1f} percentage points more than LRU.", points)),
              best > 0)
        << text;
    EXPECT_EQ(text.contains("Pinning would not have helped"), best <= 0) << text;
    gains += best > 0;
  }
  EXPECT_GT(gains, 0U);
}

// Records a model and exports its choices as a routing log.
void record_routing(const test::TempFolder& folder, const char* shape, int tokens = 30) {
  ASSERT_EQ(run_tt(folder, std::format("model {} --layers 3 -q -o m.gguf", shape)).code, 0);
  const Result recorded = run_tt(
      folder, std::format("record -m m.gguf -p 'Once upon a time' -n {} -t 1 -s 7 --ignore-eos "
                          "-o a.ttrace",
                          tokens));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const Result routing =
      run_tt(folder,
             "sql a.ttrace --csv \"SELECT token_id AS token, layer_id AS layer, expert_id AS "
             "expert, expert_rank AS rank, routing_score AS score FROM expert WHERE token_id "
             "IS NOT NULL\"");
  ASSERT_EQ(routing.code, 0) << routing.err;
  std::ofstream(folder / "routing.csv") << routing.out;
}

// The simulation in Python was written from the documentation and reads a routing log.
TEST(MoeCommand, CachesEqualASimulationInPython) {
  for (const char* shape : {"moe", "gpt-oss-like", "qwen3-moe-like"}) {
    SCOPED_TRACE(shape);
    const test::TempFolder folder;
    record_routing(folder, shape);
    const json moe = run_json(folder, "moe a.ttrace --slots 1,2,3,5,8");
    json caches = moe["caches"];
    EXPECT_GT(caches["counted"], 100);
    const std::string command =
        std::format("cd {} && python3 {} routing.csv 1 2 3 5 8 > python.json",
                    folder.path().string(), source_path("tests/cli/expert_caches.py"));
    ASSERT_EQ(std::system(command.c_str()), 0);
    const json simulated = json::parse(contents(folder / "python.json"));
    caches.erase("experts");
    EXPECT_EQ(caches, simulated);
    // No policy serves more than the optimum, and no division into layers more than one pool.
    for (const json& row : caches["rows"]) {
      for (const char* order : {"recorded", "control"}) {
        const json& of = row[order];
        for (const char* layout : {"layers", "pool"})
          for (const auto& [policy, hits] : of[layout].items())
            EXPECT_LE(hits, of[layout]["belady"]) << layout << " " << policy << row;
        EXPECT_LE(of["layers"]["belady"], of["pool"]["belady"]) << row;
      }
    }
  }
}

// The script was written with numpy from the documentation and reads a routing log.
TEST(MoeCommand, IntervalsOfTheLoadEqualThoseOfNumpy) {
  const test::TempFolder folder;
  record_routing(folder, "moe", 300);
  const json moe = run_json(folder, "moe a.ttrace");
  const std::string command =
      std::format("cd {} && python3 {} routing.csv 8 > numpy.json", folder.path().string(),
                  source_path("tests/cli/expert_load.py"));
  ASSERT_EQ(std::system(command.c_str()), 0);
  const json expected = json::parse(contents(folder / "numpy.json"));
  ASSERT_EQ(moe["routers"].size(), expected.size());
  const auto near = [](const json& found, const json& value) {
    EXPECT_NEAR(found.get<double>(), value.get<double>(), 1e-9);
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    const json &router = moe["routers"][i], &of = expected[i];
    ASSERT_GT(router["tokens"].get<int>(), 256) << "several tokens in a block";
    near(router["entropy_bits"], of["entropy_bits"]);
    near(router["gini"], of["gini"]);
    for (const char* name : {"entropy_bits", "gini"}) {
      const json& ends = of[name == std::string("gini") ? "gini_interval" : "entropy_interval"];
      near(router["intervals"][name]["low"], ends[0]);
      near(router["intervals"][name]["high"], ends[1]);
      EXPECT_LT(router["intervals"][name]["low"], router["intervals"][name]["high"]);
    }
  }
  EXPECT_TRUE(run_tt(folder, "moe a.ttrace").out.contains("interval"));
}

TEST(MoeCommand, ImportedRoutingLogsGiveTheSameAnswers) {
  const test::TempFolder folder;
  record_routing(folder, "moe");
  std::string lines;
  const json rows = json::parse(
      run_tt(folder,
             "sql a.ttrace --json \"SELECT json_object('layer', layer_id, 'token', token_id, "
             "'rank', expert_rank, 'expert', expert_id, 'score', routing_score, 'model', "
             "'m') FROM expert WHERE token_id IS NOT NULL ORDER BY layer_id, token_id\"")
          .out)["rows"];
  for (const json& row : rows) lines += row[0].get<std::string>() + "\n";
  std::ofstream(folder / "routing.jsonl") << lines;
  const json recorded = run_json(folder, "moe a.ttrace");
  for (const char* log : {"routing.csv", "routing.jsonl"}) {
    SCOPED_TRACE(log);
    const Result imported = run_tt(folder, std::format("import {0} -o {0}.ttrace", log));
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_EQ(imported.err.contains("not kept: model ("), std::string_view(log).ends_with("jsonl"))
        << imported.err;
    const json moe = run_json(folder, std::format("moe {}.ttrace", log));
    EXPECT_EQ(moe["caches"], recorded["caches"]);
    ASSERT_EQ(moe["routers"].size(), recorded["routers"].size());
    for (std::size_t i = 0; i < moe["routers"].size(); ++i) {
      json left = moe["routers"][i], right = recorded["routers"][i];
      for (json* router : {&left, &right})
        for (json& used : (*router)["used"])  // scores are written with fewer digits
          if (used["mean_score"].is_number())
            used["mean_score"] = std::round(used["mean_score"].get<double>() * 1e5);
      EXPECT_EQ(left, right);
    }
    const Result table = run_tt(folder, std::format("moe {}.ttrace", log));
    EXPECT_EQ(table.code, 0) << table.err;
    EXPECT_TRUE(table.out.contains("slots per layer")) << table.out;
    EXPECT_FALSE(table.out.contains("expert weights read")) << table.out;
    EXPECT_EQ(run_tt(folder, std::format("parse {}.ttrace --validate", log)).code, 0);
  }
  for (const auto& [text, message] :
       {std::pair{"token,layer,expert\n", "The log has no choices"},
        {"token,layer,expert\n0,0,x\n", "2: \"x\" is not a number"},
        {"token,layer,expert\n0,0\n", "2: expert is missing"},
        {"token,layer,expert\n0,0,-1\n", "expert must be a whole number from 0 to"},
        {"token,layer,expert,rank\n0,0,1,5000\n", "rank must be a whole number from 0 to 1023"},
        {"{\"token\":0,\"layer\":1,\"expert\":\"a\"}\n", "\"expert\" must be a number"}}) {
    std::ofstream(folder / "bad.csv") << text;
    const Result bad = run_tt(folder, "import bad.csv -o bad.ttrace");
    EXPECT_EQ(bad.code, 1);
    EXPECT_TRUE(bad.err.contains(message)) << bad.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "bad.ttrace"));
  }
}

TEST(MoeCommand, ReportsModelWithoutExperts) {
  const test::TempFolder folder;
  record_story(folder, "");
  for (const char* verb : {"moe a.ttrace", "moe a.ttrace --json"}) {
    const Result result = run_tt(folder, verb);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.out.empty()) << result.out;
    EXPECT_TRUE(result.err.contains("has no expert choices")) << result.err;
  }
  EXPECT_EQ(run_tt(folder, "moe none.ttrace").code, 1);
}

TEST(GgufCommand, ListsTensorsOfSplitModel) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe --splits 3 -o m.gguf").code, 0);
  const std::string first = "m-00001-of-00003.gguf";
  const json structure = run_json(folder, "gguf " + first);
  ASSERT_EQ(structure["files"].size(), 3U);
  EXPECT_EQ(structure["tensors"].back()["model_file"], 2);
  const Result csv = run_tt(folder, "gguf " + first + " --format csv");
  EXPECT_TRUE(csv.out.starts_with("tensor_name,file_offset,size_bytes,layer_id,component_type,"))
      << csv.out;
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(csv.out, '\n')),
            structure["tensors"].size() + 1);
  const Result table = run_tt(folder, "gguf " + first);
  EXPECT_EQ(table.code, 0);
  EXPECT_TRUE(table.out.contains("blk.0.ffn_gate_exps.weight")) << table.out;

  const json sizes = run_json(folder, "gguf " + first + " --compression");
  std::uint64_t bytes = 0, of_types = 0;
  for (const json& tensor : structure["tensors"])
    bytes += tensor["file_bytes"].get<std::uint64_t>();
  for (const json& type : sizes["types"]) of_types += type["bytes"].get<std::uint64_t>();
  EXPECT_EQ(sizes["total"]["bytes"], bytes);
  EXPECT_EQ(of_types, bytes);
  EXPECT_GT(sizes["total"]["ratio_f16"], 1.0);
  for (const char* format : {"table", "csv"}) {
    const Result text =
        run_tt(folder, "gguf " + first + " --compression --format " + std::string(format));
    EXPECT_EQ(text.code, 0);
    EXPECT_TRUE(text.out.contains("q4_K")) << text.out;
  }
  EXPECT_EQ(run_tt(folder, "gguf none.gguf").code, 1);
  EXPECT_EQ(run_tt(folder, "gguf " + first + " --format xml").code, 2);
}

TEST(HeadsCommand, ReportsHeadsAndKvCache) {
  const test::TempFolder folder;
  record_story(folder, "");
  const json heads = run_json(folder, "heads a.ttrace");
  EXPECT_GT(heads["heads"], 1);
  std::size_t of_q = 0;
  for (const json& weight : heads["weights"]) {
    if (weight["role"] == "Q") of_q += weight["heads"].size();
  }
  EXPECT_EQ(of_q % heads["heads"].get<std::size_t>(), 0U);
  EXPECT_GT(of_q, 0U);
  const json kv = run_json(folder, "heads a.ttrace --kv");
  ASSERT_EQ(kv["steps"].size(), 6U);
  // Flash attention reads the cells of the previous tokens and of this one.
  const json& last = kv["steps"][5]["layers"][0];
  EXPECT_GT(last["cached"], last["fresh"]);
  EXPECT_EQ(last["other"], 0);
  EXPECT_EQ(kv["steps"][0]["layers"][0]["cached"], 0);
  for (const char* query : {"heads a.ttrace", "heads a.ttrace --kv"})
    EXPECT_EQ(run_tt(folder, query).code, 0);
  EXPECT_EQ(run_tt(folder, "heads none.ttrace").code, 1);
}

}  // namespace
}  // namespace tt
