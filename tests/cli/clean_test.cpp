// --clean: the sums of a session without its disturbed steps are those of a session that has only
// the others.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/sessions/small_session.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMs = 1'000'000;

Step step_of(std::uint32_t id, std::uint64_t cpu_wait_ns, std::uint64_t throttled_ns) {
  Step step = test::small_step(id);
  step.threads = 2;
  step.conditions.interval_ns = 10 * kMs;
  step.conditions.cpu_ns = 20 * kMs - cpu_wait_ns;
  step.conditions.cpu_wait_ns = cpu_wait_ns;
  step.conditions.throttled_ns = throttled_ns;
  return step;
}

class Clean : public ::testing::Test {
 protected:
  void SetUp() override {
    const test::SmallSession mixed(
        {step_of(0, 0, 0), step_of(1, 5 * kMs, 0), step_of(2, 0, 0), step_of(3, 0, 5 * kMs)});
    const test::SmallSession quiet({step_of(0, 0, 0), step_of(1, 0, 0)});
    std::filesystem::copy_file(mixed.path, folder_ / "mixed.ttrace");
    std::filesystem::copy_file(quiet.path, folder_ / "quiet.ttrace");
  }
  json json_of(const std::string& arguments) const {
    const Result result = run_tt(folder_, arguments);
    EXPECT_EQ(result.code, 0) << arguments << "\n" << result.err;
    return json::parse(result.out, nullptr, false);
  }
  const test::TempFolder folder_;
};

constexpr const char* kLeftOut = "2 of 4 steps that were not clean (--clean)";

TEST_F(Clean, Hot) {
  for (const char* by : {"layer", "tensor", "op_kind", "phase"}) {
    const std::string options = std::string(" --json --value time --by ") + by;
    const json all = json_of("hot mixed.ttrace" + options);
    json quiet = json_of("hot quiet.ttrace" + options);
    json clean = json_of("hot mixed.ttrace --clean" + options);
    EXPECT_NE(all["sums"], quiet["sums"]);
    EXPECT_EQ(all["left_out_steps"], 0);
    EXPECT_EQ(clean["left_out_steps"], 2);
    clean["left_out_steps"] = 0;
    // The same steps have other numbers in the session without the others.
    for (json* of : {&clean, &quiet}) (*of)["summed_steps"].erase("last_step");
    EXPECT_EQ(clean, quiet);
  }
  EXPECT_TRUE(run_tt(folder_, "hot mixed.ttrace --clean").out.contains(kLeftOut));
  EXPECT_FALSE(run_tt(folder_, "hot quiet.ttrace --clean").out.contains("--clean"));
}

TEST_F(Clean, Compare) {
  const json all = json_of("compare mixed.ttrace mixed.ttrace --json");
  const json quiet = json_of("compare quiet.ttrace quiet.ttrace --json");
  const json clean = json_of("compare mixed.ttrace quiet.ttrace --clean --json");
  // Medians are of the steps that nothing disturbed, in any case.
  EXPECT_EQ(all["rows"], quiet["rows"]);
  EXPECT_EQ(clean["rows"], quiet["rows"]);
  EXPECT_FALSE(clean["rows"].empty());
  EXPECT_EQ(clean["left_out_steps"], json({2, 0}));
  const std::string text = run_tt(folder_, "compare mixed.ttrace quiet.ttrace --clean").out;
  EXPECT_TRUE(text.contains(std::string("the sums on the left: ") + kLeftOut)) << text;
  EXPECT_FALSE(text.contains("the sums on the right"));
}

TEST_F(Clean, Parse) {
  json clean = json_of("parse mixed.ttrace --stats --clean --json");
  EXPECT_EQ(clean["left_out_steps"], 2);
  clean.erase("left_out_steps");
  EXPECT_EQ(clean, json_of("parse quiet.ttrace --stats --json"));
  EXPECT_TRUE(run_tt(folder_, "parse mixed.ttrace --stats --clean").out.contains(kLeftOut));

  std::set<int> steps;
  for (const json& row : json_of("parse mixed.ttrace --clean --json")["accesses"])
    steps.insert(row["step"].get<int>());
  EXPECT_EQ(steps, (std::set<int>{0, 2}));
  EXPECT_TRUE(run_tt(folder_, "parse mixed.ttrace --clean").err.contains(kLeftOut));
}

TEST_F(Clean, Report) {
  const json report = json_of("report mixed.ttrace --clean --json");
  EXPECT_TRUE(report.dump().contains("without 2 of 4 steps, which were not clean")) << report;
  EXPECT_FALSE(json_of("report mixed.ttrace --json").dump().contains("were not clean."));
  // The section of times has the sums of the session with only quiet steps.
  const json quiet = json_of("report quiet.ttrace --json");
  const auto times = [](const json& of) {
    for (const json& section : of["sections"])
      if (section["title"] == "By kind of op") return section;
    return json();
  };
  EXPECT_FALSE(times(quiet).is_null()) << quiet;
  EXPECT_EQ(times(report), times(quiet));
}

TEST_F(Clean, Show) {
  EXPECT_TRUE(run_tt(folder_, "show mixed.ttrace --clean").out.contains(kLeftOut));
}

}  // namespace
}  // namespace tt
