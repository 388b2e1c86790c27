// The order in which weights are read, in a file between starts.
#include "tracer/memory/plan/stored_pattern.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<ModelFile> two_files() {
  return {{.path = "a", .size = 10'000, .mtime_ns = 1, .header_hash = "00aa"},
          {.path = "b", .size = 5'000, .mtime_ns = 2, .header_hash = "00bb"}};
}

StoredPattern some_pattern() {
  StoredPattern pattern{.window_seconds = 0.04,
                        .disk_bytes_per_second = 812345678.25,
                        .fault_bytes_per_second = 1012345678.5,
                        .orders = {}};
  pattern.orders[0].weights = {
      {.range = {.file = {0, 100, 200}, .address = 0}, .op = OpId{3}},
      {.range = {.file = {1, 0, 5'000}, .address = 0}, .op = OpId{3}},
      {.range = {.file = {0, 9'000, 1'000}, .address = 0}, .op = OpId{70'000}}};
  ExpertUse experts;
  experts.range = {.file = {1, 8, 800}, .address = 0};
  experts.op = OpId{9};
  experts.slice = experts.stride = 100;
  experts.experts = 8;
  experts.per_token = 2;
  experts.tokens = 1;
  pattern.orders[0].experts = {experts};
  pattern.orders[0].lookup = {{.file = {0, 0, 100}, .address = 0}};
  pattern.orders[1].weights = {{.range = {.file = {0, 100, 200}, .address = 0}, .op = OpId{5}}};
  return pattern;
}

TEST(StoredPattern, IsTheSameAfterReading) {
  const TempFolder folder;
  const fs::path file = pattern_file(folder.path() / "patterns", "/models/m.gguf");
  EXPECT_EQ(file.filename(), "m.gguf.access_pattern.json");
  EXPECT_FALSE(read_pattern(file, two_files()).has_value());
  ASSERT_TRUE(write_pattern(file, pattern_text(some_pattern(), two_files())));
  const auto read = read_pattern(file, two_files());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(**read, some_pattern());
  EXPECT_FALSE(write_pattern("/proc/none/model.pattern", "text"));
}

TEST(StoredPattern, OfAnotherModelIsRefused) {
  const std::string text = pattern_text(some_pattern(), two_files());
  auto other = two_files();
  other[1].header_hash = "00bc";
  const auto larger = [] {
    auto files = two_files();
    files[0].size += 32;
    return files;
  }();
  const std::vector<ModelFile> one = {two_files().front()};
  for (const auto& files : {other, larger, one}) {
    const auto parsed = parse_pattern(text, files);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_TRUE(parsed.error().contains("another model")) << parsed.error();
  }
}

// Cut anywhere, or with wrong values: never a pattern that is not of the model.
TEST(StoredPattern, DamageIsFound) {
  const std::string text = pattern_text(some_pattern(), two_files());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parse_pattern(text.substr(0, length), two_files()).has_value()) << length;
  const auto damaged = [&](const std::string& pointer, const json& value) {
    SCOPED_TRACE(pointer + " " + value.dump());
    json changed = json::parse(text);
    changed[json::json_pointer(pointer)] = value;
    const auto parsed = parse_pattern(changed.dump(), two_files());
    ASSERT_FALSE(parsed.has_value());
    EXPECT_TRUE(parsed.error().starts_with("is damaged: ")) << parsed.error();
  };
  // The entries: what is looked up, then whole reads, then experts.
  const std::string read = "/per_token_pattern/1", experts = "/per_token_pattern/4";
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, json>>{{"/version", 3},
                                                 {"/window_seconds", -1},
                                                 {"/disk_bytes_per_second", "fast"},
                                                 {"/prompt_pattern", 7},
                                                 {"/per_token_pattern", json::array()},
                                                 {read, nullptr},
                                                 {read + "/kind", "whole"},
                                                 {read + "/kind", 1},
                                                 {read + "/model_file", 2},
                                                 {read + "/file_offset", 9900},
                                                 {read + "/file_offset", 1.5},
                                                 {read + "/file_bytes", 18446744073709551615U},
                                                 {read + "/file_bytes", 0},
                                                 {read + "/op", 99'999},
                                                 {read + "/op", -1},
                                                 {read + "/op", 4294967296U},
                                                 {experts + "/part_bytes", 801},
                                                 {experts + "/part_bytes", 0},
                                                 {experts + "/parts", "2"}})
    damaged(pointer, value);
  json old = json::parse(text);
  old["version"] = 1;
  const auto of_old = parse_pattern(old.dump(), two_files());
  ASSERT_FALSE(of_old.has_value());
  EXPECT_TRUE(of_old.error().contains("tt pattern")) << of_old.error();
  json without_op = json::parse(text);
  without_op["per_token_pattern"][1].erase("op");
  EXPECT_FALSE(parse_pattern(without_op.dump(), two_files()).has_value());
  for (const char* other : {"", "null", "[]", "7", "[[[[", "{\"version\": 1}"})
    EXPECT_FALSE(parse_pattern(other, two_files()).has_value()) << other;
}

modelgen::ModelSpec pattern_spec(std::int64_t layers) {
  return {.shape = "small", .dims = {.layers = layers, .embd = 512, .heads = 8, .ff = 1536}};
}

// The engine acts at the second start before the first step.
TEST(StoredPattern, SurvivesARestart) {
  // On a disk: pages of a tmpfs cannot be dropped.
  const fs::path folder = fs::current_path() / ("stored_pattern_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto write = [&](std::int64_t layers) {
    const auto report = modelgen::write_model(pattern_spec(layers), folder / "m.gguf");
    ASSERT_TRUE(report.has_value());
    ASSERT_EQ(report->files.size(), 1U);
  };
  write(6);
  ModelOptions options;
  options.repack = false;
  options.memory.budget = 8U << 20;
  options.pattern_folder = folder / "patterns";
  const auto start = [&] {
    return std::make_unique<TracedModel>(folder / "m.gguf", TracedModel::small_context(), options);
  };
  const auto answer = [](TracedModel& model) {
    const auto run = model.run(greedy_tokens(3, 4));
    std::vector<std::int32_t> ids;
    for (const Token& token : run.captured.tokens) ids.push_back(token.id);
    return ids;
  };
  auto first = start();
  EXPECT_EQ(first->engine().memory_state().phase, MemoryState::Phase::Learning);
  const auto expected = answer(*first);
  const fs::path kept = folder / "patterns" / "m.gguf.access_pattern.json";
  EXPECT_TRUE(wait_until([&] { return fs::exists(kept); }));
  const auto pinned = [](TracedModel& model) {
    const MemoryState state = model.engine().memory_state();
    return state.phase == MemoryState::Phase::Active && state.pinned > 0 &&
           state.resident >= state.pinned;
  };
  EXPECT_TRUE(wait_until([&] { return pinned(*first); }));
  first.reset();

  auto second = start();
  EXPECT_TRUE(wait_until([&] { return pinned(*second); }))
      << second->engine().memory_state().message;
  EXPECT_TRUE(second->engine().memory_state().message.contains("order of the access pattern"))
      << second->engine().memory_state().message;
  EXPECT_EQ(answer(*second), expected);
  EXPECT_TRUE(wait_until([&] {
    return !second->engine().memory_state().message.contains("order of the access pattern");
  }));
  second.reset();

  // The file as an option.
  options.access_pattern = folder / "given.json";
  fs::copy_file(kept, options.access_pattern);
  fs::remove(kept);
  auto given = start();
  EXPECT_TRUE(wait_until([&] { return pinned(*given); })) << given->engine().memory_state().message;
  EXPECT_TRUE(given->engine().memory_state().message.contains("order of the access pattern"))
      << given->engine().memory_state().message;
  EXPECT_EQ(answer(*given), expected);
  EXPECT_TRUE(wait_until([&] { return fs::exists(kept); }));
  given.reset();
  options.access_pattern.clear();

  // Another model of the same name.
  write(7);
  auto other = start();
  EXPECT_TRUE(wait_until(
      [&] { return other->engine().memory_state().message.contains("is of another model"); }));
  EXPECT_EQ(other->engine().memory_state().phase, MemoryState::Phase::Learning);
  answer(*other);
  // Its own order replaces it.
  EXPECT_TRUE(wait_until([&] {
    const MemoryState state = other->engine().memory_state();
    return state.phase == MemoryState::Phase::Active && !state.message.contains("another model");
  }));
  other.reset();
  auto again = start();
  EXPECT_TRUE(wait_until([&] { return pinned(*again); }));
  again.reset();
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tt::test
