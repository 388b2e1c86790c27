// tt generality: what is learned on one session, tried on others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using nlohmann::json;

void write_model(const test::TempFolder& folder, const std::string& options) {
  const Result written = run_tt(folder, "model " + options);
  ASSERT_EQ(written.code, 0) << written.err;
}

void record(const test::TempFolder& folder, const std::string& model, const std::string& prompt,
            const std::string& file, int tokens = 12) {
  const Result recorded =
      run_tt(folder, std::format("record -m {} -p '{}' -n {} -t 1 --ignore-eos -o {}.ttrace", model,
                                 prompt, tokens, file));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
}

// The numbers of a trial, without what follows from them.
json counts_of(const json& row, const std::vector<const char*>& names) {
  json out;
  for (const char* name : names) out[name] = row[name];
  for (const char* part : {"experts", "order", "memory"})
    for (const char* name : {"total", "learned", "own"}) out[part][name] = row[part][name];
  return out;
}

void save_table(const test::TempFolder& folder, const std::string& sql, const char* file) {
  const Result table = run_tt(folder, "sql . --csv \"" + sql + "\"");
  ASSERT_EQ(table.code, 0) << table.err;
  std::ofstream(folder / file) << table.out;
}

// Three prompts, and one of them with another quantization. The script reads SQL tables.
TEST(Generality, EqualsASimulationInPython) {
  const test::TempFolder folder;
  write_model(folder, "moe --layers 3 -q -o a.gguf");
  write_model(folder, "moe --layers 3 --quant q8_0 -q -o b.gguf");
  record(folder, "a.gguf", "Once upon a time", "a");
  record(folder, "a.gguf", "The quick brown fox jumps over the lazy dog", "b", 20);
  record(folder, "a.gguf", "1 2 3", "c");
  record(folder, "b.gguf", "Once upon a time", "d");
  save_table(folder,
             "SELECT session, layer_id, expert_id, count(*) AS choices FROM expert GROUP BY 1, 2, "
             "3",
             "choices.csv");
  save_table(folder,
             "SELECT session, step, phase, op, access, part, tensor_name, extent, expert_id, "
             "unit_bytes, file_offset, file_bytes, tensor_file_offset FROM access WHERE NOT write "
             "AND tensor_kind = 'weight' AND file_bytes > 0 ORDER BY session, step, op, access, "
             "part",
             "reads.csv");
  for (const int slots : {2, 5}) {
    SCOPED_TRACE(slots);
    const json found = run_json(
        folder, slots == 2 ? "generality ." : std::format("generality . --slots {}", slots));
    EXPECT_EQ(found["slots"], slots) << "a quarter of 8 experts by default";
    ASSERT_EQ(std::system(std::format("cd {} && python3 {} choices.csv reads.csv {} > python.json",
                                      folder.path().string(),
                                      source_path("tests/cli/generality.py"), slots)
                              .c_str()),
              0);
    const json expected = json::parse(contents(folder / "python.json"));
    ASSERT_EQ(found["pairs"].size(), expected["pairs"].size());
    for (std::size_t i = 0; i < expected["pairs"].size(); ++i)
      EXPECT_EQ(counts_of(found["pairs"][i], {"learned_on", "tried_on"}), expected["pairs"][i]);
    ASSERT_EQ(found["leave_one_out"].size(), 4U);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(counts_of(found["leave_one_out"][i], {"learned_on", "tried_on"}),
                expected["leave_one_out"][i]);
    double loss = 0;
    for (const json& of : found["leave_one_out"]) {
      const double total = of["experts"]["total"];
      loss += (of["experts"]["own"].get<double>() - of["experts"]["learned"].get<double>()) / total;
    }
    EXPECT_GT(loss, 0) << "no ranking is as good as the session's own";
    EXPECT_NEAR(found["means"].back()["experts"]["loss"], loss / 4, 1e-12);
    EXPECT_TRUE(found["means"].back()["differs"].is_null());
    const std::string sentence = found["sentences"][0];
    EXPECT_TRUE(sentence.contains(
        std::format("serves {:.1f} % of the requests, {:.1f} percentage points less than",
                    100 * found["means"].back()["experts"]["share"].get<double>(), 100 * loss / 4)))
        << sentence;
  }
}

TEST(Generality, SaysWhatDiffersBetweenTheSessions) {
  const test::TempFolder folder;
  write_model(folder, "moe --layers 2 -q -o a.gguf");
  write_model(folder, "moe --layers 2 --quant q8_0 -q -o b.gguf");
  write_model(folder, "moe --layers 2 --seed 7 --context 1024 -q -o c.gguf");
  write_model(folder, "moe --layers 3 -q -o d.gguf");
  write_model(folder, "moe --layers 2 --experts 6 -q -o e.gguf");
  for (const auto& [name, model, prompt] : {std::tuple{"a", "a", "Once"},
                                            {"again", "a", "Once"},
                                            {"b", "b", "Once"},
                                            {"c", "c", "Twice upon"},
                                            {"d", "d", "Once"},
                                            {"e", "e", "Once"}})
    record(folder, std::format("{}.gguf", model), prompt, name, 6);
  const json found = run_json(folder, "generality .");
  const auto pair = [&](std::size_t learned, std::size_t tried) {
    return found["pairs"][learned * 6 + tried];
  };
  EXPECT_EQ(pair(0, 1)["differs"], json::array());
  EXPECT_EQ(pair(0, 2)["differs"], (json{"quantization"}));
  EXPECT_EQ(pair(0, 3)["differs"], (json{"prompt", "model"}));
  EXPECT_EQ(pair(2, 3)["differs"], (json{"prompt", "quantization"}));
  // The same weights in other places of another file: the order of the reads is the same.
  EXPECT_EQ(pair(0, 2)["order"]["learned"], pair(0, 2)["order"]["own"]);
  EXPECT_GT(pair(0, 2)["order"]["learned"], 0);
  // A repetition with the same tokens loses nothing.
  for (const char* part : {"experts", "order", "memory"})
    EXPECT_EQ(pair(0, 0)[part]["learned"], pair(0, 0)[part]["own"]);
  // Other models are refused, in both directions, with the reason.
  for (const std::size_t other : {4U, 5U}) {
    for (const json& refused : {pair(0, other), pair(other, 0)}) {
      for (const char* part : {"experts", "order", "memory"}) EXPECT_TRUE(refused[part].is_null());
      EXPECT_TRUE(refused["refused"].get<std::string>().contains(other == 4 ? "blk.2." : "blk.0."))
          << refused;
    }
    EXPECT_EQ(found["leave_one_out"][other]["learned_on"], 0);
    EXPECT_TRUE(found["leave_one_out"][other]["experts"].is_null());
  }
  EXPECT_EQ(found["leave_one_out"][0]["learned_on"], 3);
  const Result text = run_tt(folder, "generality .");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part :
       {"another quantization", "another prompt and another model", "the same model and prompt",
        "all other sessions", "- a and d: a has no weight blk.2.", "18 pairs were not tried"})
    EXPECT_TRUE(text.out.contains(part)) << part << "\n" << text.out;
}

// A dense model has no experts; every token reads the same weights.
TEST(Generality, OfDenseModelTriesOrderAndMemory) {
  const test::TempFolder folder;
  write_model(folder, "small --layers 2 -q -o m.gguf");
  record(folder, "m.gguf", "Once", "a");
  record(folder, "m.gguf", "Twice upon", "b");
  const json found = run_json(folder, "generality a.ttrace b.ttrace --memory 100KB");
  EXPECT_EQ(found["slots"], 0);
  for (const json& pair : found["pairs"]) {
    EXPECT_TRUE(pair["experts"].is_null());
    EXPECT_EQ(pair["order"]["learned"], pair["order"]["own"]);
    EXPECT_LE(pair["memory"]["learned"], pair["memory"]["own"]);
  }
  EXPECT_EQ(found["sessions"][0]["memory_bytes"], 100'000);
  // The pattern learned and tried on one session is that of tt pattern.
  const json pattern = run_json(folder, "pattern b.ttrace");
  EXPECT_EQ(found["pairs"][3]["order"]["total"], pattern["prediction"]["reads"]);
  EXPECT_EQ(found["pairs"][3]["order"]["learned"], pattern["prediction"]["right"]);
  // What the session itself teaches about memory is what tt reuse calls pinning.
  const json reuse = run_json(folder, "reuse b.ttrace --sizes 100KB");
  EXPECT_EQ(found["pairs"][3]["memory"]["own"], reuse["curve"][0]["pin"]["bytes_saved"]) << reuse;
}

// Routing logs of other tools have experts only.
TEST(Generality, OfRoutingLogsTriesExperts) {
  const test::TempFolder folder;
  std::ofstream(folder / "a.csv") << "token,layer,expert\n0,0,1\n0,0,2\n1,0,1\n";
  std::ofstream(folder / "b.csv") << "token,layer,expert\n0,0,1\n1,0,3\n2,0,3\n3,0,3\n";
  for (const char* log : {"a", "b"})
    ASSERT_EQ(run_tt(folder, std::format("import {0}.csv -o {0}.ttrace", log)).code, 0);
  const json found = run_json(folder, "generality a.ttrace b.ttrace --slots 1");
  const json& trial = found["pairs"][1]["experts"];
  EXPECT_EQ(trial["total"], 4);
  EXPECT_EQ(trial["learned"], 1) << "expert 1";
  EXPECT_EQ(trial["own"], 3) << "expert 3";
  EXPECT_EQ(found["pairs"][1]["differs"], json{"prompt"}) << "unknown";
  EXPECT_TRUE(found["pairs"][1]["order"].is_null());
  EXPECT_TRUE(found["pairs"][1]["memory"].is_null());
}

TEST(Generality, NeedsSeveralSessions) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 4 -t 1 -o a.ttrace").code, 0);
  const Result one = run_tt(folder, "generality a.ttrace");
  EXPECT_EQ(one.code, 1);
  EXPECT_TRUE(one.err.contains("Name several")) << one.err;
  EXPECT_EQ(run_tt(folder, "generality a.ttrace none.ttrace").code, 1);
  EXPECT_EQ(run_tt(folder, "generality a.ttrace --slots 0").code, 2);
  std::ofstream(folder / "text.ttrace") << "text";
  const Result damaged = run_tt(folder, "generality a.ttrace text.ttrace");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(damaged.err.contains("text: ")) << damaged.err;
  // A file that is damaged in its middle counts up to there, with a warning.
  ASSERT_EQ(run_tt(folder, "record -p 'Tell me a story' -n 120 -t 1 --ignore-eos -o b.ttrace").code,
            0);
  std::filesystem::resize_file(folder / "b.ttrace",
                               std::filesystem::file_size(folder / "b.ttrace") * 7 / 10);
  const Result cut = run_tt(folder, "generality a.ttrace b.ttrace");
  EXPECT_EQ(cut.code, 1);
  EXPECT_TRUE(cut.err.contains("b is damaged; only its first ")) << cut.err;
  EXPECT_TRUE(cut.out.contains("Learned on the other session,")) << cut.out;
}

}  // namespace
}  // namespace tt
