// tt parse and tt show as a person and as a program use them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

class Parse : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        run_tt(folder, "record -p 'Once upon a time' -n 6 -t 1 --ignore-eos -o a.ttrace").code, 0);
  }
  const testing::TempFolder folder;
};

TEST_F(Parse, ShowsTheFirstAccessesOfALayer) {
  const Result people = run_tt(folder, "parse a.ttrace --layer 2 --limit 3");
  ASSERT_EQ(people.code, 0) << people.err;
  EXPECT_TRUE(people.out.contains("blk.2.attn_norm.weight")) << people.out;
  EXPECT_FALSE(people.out.contains("blk.1.")) << people.out;
  EXPECT_EQ(std::ranges::count(people.out, '\n'), 5) << people.out;  // head, rows, "more"

  const Result programs = run_tt(folder, "parse a.ttrace --layer 2 --limit 3 --json");
  const json rows = json::parse(programs.out)["accesses"];
  ASSERT_EQ(rows.size(), 3U);
  for (const json& row : rows) EXPECT_EQ(row["layer"], 2);
}

TEST_F(Parse, ASoundRecordingPassesEveryCheck) {
  const Result people = run_tt(folder, "parse a.ttrace --validate");
  EXPECT_EQ(people.code, 0) << people.out << people.err;
  EXPECT_TRUE(people.out.contains("The recording is sound.")) << people.out;
  const json checks = json::parse(run_tt(folder, "parse a.ttrace --validate --json").out);
  EXPECT_TRUE(checks["passed"]);
  for (const json& check : checks["checks"]) {
    const bool dense = check["check"] == "experts";  // this model has none
    EXPECT_EQ(check["verdict"], dense ? "not_applicable" : "passed") << check;
  }
}

TEST_F(Parse, ADamagedRecordingFailsLoudly) {
  {
    std::fstream file(folder / "a.ttrace", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0, std::ios::end);
    file.seekp(static_cast<std::streamoff>(file.tellp()) - 3000);
    file << std::string(64, 'x');
  }
  const Result result = run_tt(folder, "parse a.ttrace --validate");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.out.contains("NOT sound")) << result.out << result.err;
  EXPECT_TRUE(result.out.contains("file         FAILED")) << result.out;
}

TEST_F(Parse, ShowSaysWhatWasRecorded) {
  const Result people = run_tt(folder, "show a.ttrace");
  ASSERT_EQ(people.code, 0) << people.err;
  for (const char* text :
       {"Once upon a time", "pocket.gguf", "6 layers", "prompt", "generate", "lost       nothing"})
    EXPECT_TRUE(people.out.contains(text)) << text << " is not in\n" << people.out;
  EXPECT_FALSE(people.out.contains("request.temperature"));
  EXPECT_TRUE(run_tt(folder, "show a.ttrace --facts").out.contains("request.temperature"));
  const json shown = json::parse(run_tt(folder, "show a.ttrace --json").out);
  EXPECT_EQ(shown["state"], "done");
  EXPECT_EQ(shown["n_layers"], 6);
}

TEST_F(Parse, WhatIsNoSessionIsSaid) {
  std::ofstream(folder / "none.ttrace") << "no session";
  for (const char* command : {"parse", "parse --validate", "show"}) {
    const Result none = run_tt(folder, std::string(command) + " none.ttrace");
    EXPECT_EQ(none.code, 1) << command;
    EXPECT_TRUE(none.err.starts_with("tt ")) << none.err;
    EXPECT_EQ(run_tt(folder, std::string(command) + " gone.ttrace").code, 1);
  }
}

}  // namespace
}  // namespace tt
