// tt pattern, as text and as JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

TEST(PatternCommand, PredictsReadsOfDenseModel) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 24 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const Result result = run_tt(folder, "pattern a.ttrace -o access_pattern.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.out.contains("22 tokens compared")) << result.out;
  EXPECT_TRUE(result.out.contains("22 read the same weights")) << result.out;

  const json pattern = json::parse(contents(folder / "access_pattern.json"));
  EXPECT_GE(pattern["prediction"]["accuracy"], 0.95);
  EXPECT_EQ(pattern["determinism"]["differing"]["graph"], 0);
  EXPECT_EQ(pattern["determinism"]["differing"]["experts"], 0);
  const json& entries = pattern["per_token_pattern"];
  ASSERT_FALSE(entries.empty());
  for (const json& entry : entries) {
    for (const char* key : {"tensor_name", "file_offset", "size_bytes", "layer_id", "component"})
      EXPECT_TRUE(entry.contains(key)) << key;
    EXPECT_LE(entry["file_offset"].get<std::uint64_t>() + entry["file_bytes"].get<std::uint64_t>(),
              pattern["model_files"][0]["size"].get<std::uint64_t>());
  }
  EXPECT_EQ(entries.front()["tensor_name"], "token_embd.weight");
  EXPECT_EQ(entries.front()["kind"], "row");
  EXPECT_EQ(entries.back()["tensor_name"], "output.weight");
}

TEST(PatternCommand, MoeModelHasRoutedEntries) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe -q -o moe.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "record -m moe.gguf -p 'a b' -n 12 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const Result result = run_tt(folder, "pattern a.ttrace --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json pattern = json::parse(result.out);
  EXPECT_GT(pattern["determinism"]["differing"]["experts"], 0);
  std::size_t routed = 0;
  for (const json& entry : pattern["per_token_pattern"]) {
    if (entry["kind"] != "routed") continue;
    ++routed;
    EXPECT_EQ(entry["component"], "moe");
    EXPECT_LT(entry["size_bytes"], entry["file_bytes"]);
  }
  EXPECT_GT(routed, 0U);
}

TEST(PatternCommand, PatternIsAnInputForTheSameModel) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small -q -o small.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "model moe -q -o moe.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "record -m moe.gguf -p a -n 4 -t 1 --ignore-eos -o a.ttrace").code, 0);
  ASSERT_EQ(run_tt(folder, "pattern a.ttrace -o moe.json").code, 0);
  const auto record = [&](const std::string& model, const std::string& file) {
    return run_tt(folder, "record -m " + model + " -p a -n 4 -t 1 --memory-budget 8MiB" +
                              " --access-pattern " + file + " --force -o b.ttrace");
  };
  EXPECT_EQ(record("moe.gguf", "moe.json").code, 0);
  for (const auto& [model, file, why] :
       {std::tuple{"small.gguf", "moe.json", "is of another model: the size or the header"},
        std::tuple{"moe.gguf", "a.ttrace", "is damaged: it is not JSON"},
        std::tuple{"moe.gguf", "none.json", "does not exist"}}) {
    const Result refused = record(model, file);
    EXPECT_NE(refused.code, 0) << why;
    EXPECT_TRUE(refused.err.contains(why)) << refused.err;
    EXPECT_TRUE(refused.err.contains("tt pattern SESSION -o FILE")) << refused.err;
  }
}

TEST(PatternCommand, ReportsWhyThereIsNoPattern) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 4 -t 1 --level minimal -o a.ttrace").code, 0);
  const Result result = run_tt(folder, "pattern a.ttrace");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.err.contains("level detailed")) << result.err;
}

}  // namespace
}  // namespace tt
