// tt trend: figures of recorded sessions over days.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr std::int64_t kHourNs = 3'600'000'000'000, kDayNs = 24 * kHourNs;
constexpr std::int64_t kFirstDay = 20'000;  // 2024-10-04

// Recordings with longer and longer prompts, so that a token reads more of the KV cache, in the
// folder `runs`, as if they had been made on six days within a week, and one more on the first day.
class Trend : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    std::filesystem::create_directory(*folder_ / "runs");
    std::string prompt;
    int day = 0;
    for (const char* words :
         {"Once upon", " a time there was", " a little girl who lived", " in a small house near",
          " the forest and she had", " a friend whose name was"}) {
      prompt += words;
      record("-t 1", prompt, "log");
      write_at("log", std::format("day-{}", day), (kFirstDay + day) * kDayNs + 23 * kHourNs);
      if (day == 0) write_at("log", "early", kFirstDay * kDayNs);
      day += day == 2 ? 2 : 1;
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static void record(const std::string& options, const std::string& prompt,
                     const std::string& log) {
    const Result recorded =
        run_tt(*folder_, std::format("record {} -p '{}' -n 8 --ignore-eos --temp 0 -q --force -o "
                                     "s.ttrace && {} export s.ttrace --force -q -o {}.ndjson",
                                     options, prompt, kTestPaths.tt, log));
    ASSERT_EQ(recorded.code, 0) << recorded.err;
  }
  // A session of the log that started at another time.
  static void write_at(const std::string& log, const std::string& name, std::int64_t start_ns,
                       const std::string& folder = "runs") {
    std::string text = contents(folder_->path() / (log + ".ndjson"));
    constexpr std::string_view kStart = "\"start_utc_ns\":";
    const std::size_t at = text.find(kStart);
    ASSERT_NE(at, std::string::npos);
    const std::size_t from = at + kStart.size();
    text.replace(from, text.find_first_not_of("0123456789-", from) - from,
                 std::to_string(start_ns));
    std::ofstream(*folder_ / "changed.ndjson") << text;
    const Result imported =
        run_tt(*folder_, std::format("import changed.ndjson -o {}/{}.ttrace", folder, name));
    ASSERT_EQ(imported.code, 0) << imported.err;
  }
  static json answer(const std::string& arguments) { return run_json(*folder_, arguments); }
  static void save_table(const std::string& sql, const char* file) {
    const Result table = run_tt(*folder_, "sql runs --csv \"" + sql + "\"");
    ASSERT_EQ(table.code, 0) << table.err;
    std::ofstream(*folder_ / file) << table.out;
  }
  static json named(const json& group, const std::string& name) {
    for (const json& figure : group["figures"])
      if (figure["name"] == name) return figure;
    return {};
  }
  static test::TempFolder* folder_;
};
test::TempFolder* Trend::folder_ = nullptr;

TEST_F(Trend, EqualsAComputationInPython) {
  save_table("SELECT session, start_utc_ns FROM session", "starts.csv");
  save_table(
      "SELECT session, phase, bytes_read, disk_bytes, token_count FROM (SELECT session, phase, "
      "sum(bytes_read) AS bytes_read, sum(token_count) AS token_count FROM step GROUP BY 1, 2) "
      "JOIN (SELECT session, phase, sum(size_bytes) FILTER (WHERE memory_source = 'disk') AS "
      "disk_bytes FROM access_total WHERE NOT write GROUP BY 1, 2) USING (session, phase)",
      "sums.csv");
  for (const std::string by : {"day", "session"}) {
    SCOPED_TRACE(by);
    const json found = answer("trend runs --by " + by);
    EXPECT_EQ(found["by"], by);
    ASSERT_EQ(found["groups"].size(), 1u) << "prompts do not make a group";
    const json& group = found["groups"][0];
    EXPECT_EQ(group["sessions"], 7);
    EXPECT_TRUE(std::ranges::contains(group["mixed_facts"], json("request.prompt")));
    ASSERT_EQ(
        std::system(std::format("cd {} && python3 {} starts.csv sums.csv {} > python.json",
                                folder_->path().string(), source_path("tests/cli/trend.py"), by)
                        .c_str()),
        0);
    const json expected = json::parse(contents(*folder_ / "python.json"));
    ASSERT_EQ(expected.size(), 4u);
    for (const auto& [name, of] : expected.items()) {
      SCOPED_TRACE(name);
      const json figure = named(group, name);
      ASSERT_FALSE(figure.is_null());
      ASSERT_EQ(figure["points"].size(), of["medians"].size());
      for (std::size_t i = 0; i < of["medians"].size(); ++i) {
        if (by == "day") {
          EXPECT_EQ(group["points"][i]["at"], of["at"][i]);
        }
        EXPECT_EQ(figure["points"][i]["sessions"], of["sessions"][i]);
        const double median = of["medians"][i];
        EXPECT_NEAR(figure["points"][i]["median"].get<double>(), median, 1e-9 * median);
      }
      EXPECT_EQ(figure["trend"]["points"], of["trend"]["points"]);
      EXPECT_EQ(figure["trend"]["rises"], of["trend"]["rises"]);
      EXPECT_NEAR(figure["trend"]["p"].get<double>(), of["trend"]["p"].get<double>(), 1e-12);
      const double slope = of["trend"]["slope"];
      EXPECT_NEAR(figure["trend"]["slope"].get<double>(), slope, 1e-9 * std::abs(slope));
    }
  }
}

TEST_F(Trend, FindsWhatRises) {
  const json found = answer("trend runs");
  const json bytes = named(found["groups"][0], "bytes read per generated token");
  EXPECT_TRUE(bytes["significant"].get<bool>()) << bytes;
  EXPECT_EQ(bytes["trend"]["rises"], 15);
  EXPECT_GT(bytes["trend"]["low"].get<double>(), 0);
  EXPECT_EQ(bytes["disturbed_sessions"], 0) << "bytes do not depend on the machine";
  EXPECT_EQ(found["groups"][0]["points"][0]["sessions"], (json{"early", "day-0"}));
  // Each session has each time, or it was disturbed.
  const json all = answer("trend runs --disturbed");
  for (const auto& [trend, without] : {std::pair{&found, true}, {&all, false}}) {
    const json speed = named((*trend)["groups"][0], "tokens per second");
    std::uint64_t sessions = speed["disturbed_sessions"];
    EXPECT_TRUE(without || sessions == 0);
    for (const json& point : speed["points"])
      if (!point.is_null()) sessions += point["sessions"].get<std::uint64_t>();
    EXPECT_EQ(sessions, 7u);
  }
  const Result text = run_tt(*folder_, "trend runs --disturbed --limit 2");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part :
       {"7 sessions, 2024-10-04 to 2024-10-10 (6 days)",
        "Not the same in all of them: ", "... 4 days earlier",
        "Bytes read per generated token: rises by ", " per day (", "p: how likely"})
    EXPECT_TRUE(text.out.contains(part)) << part << "\n" << text.out;
  EXPECT_FALSE(text.out.contains("2024-10-08")) << text.out;
}

TEST_F(Trend, OfFewDaysSaysThatNoTrendCanBeTold) {
  for (const char* arguments : {"runs/day-0.ttrace", "'runs/day-[013].ttrace'",
                                "runs/day-0.ttrace runs/early.ttrace --by session"}) {
    const Result text = run_tt(*folder_, std::string("trend ") + arguments);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_TRUE(text.out.contains("No trend can be told from ")) << text.out;
    EXPECT_TRUE(text.out.contains("at least 5 are needed")) << text.out;
    EXPECT_FALSE(text.out.contains("rises by") || text.out.contains("falls by")) << text.out;
  }
  for (const json& figure : answer("trend 'runs/day-[013].ttrace'")["groups"][0]["figures"]) {
    EXPECT_TRUE(figure["trend"].is_null());
    EXPECT_FALSE(figure["significant"].get<bool>());
  }
}

// Another model and another number of threads: each has its own trend.
TEST_F(Trend, DoesNotMixModels) {
  const json alone = answer("trend runs");
  ASSERT_EQ(run_tt(*folder_, "model small --layers 2 -q --force -o other.gguf").code, 0);
  std::filesystem::create_directory(*folder_ / "others");
  record("-m other.gguf -t 1", "Once", "other");
  write_at("other", "other", (kFirstDay + 8) * kDayNs, "others");
  record("-t 2", "Once", "threads");
  write_at("threads", "threads", (kFirstDay + 9) * kDayNs, "others");
  const json found = answer("trend runs others");
  ASSERT_EQ(found["groups"].size(), 3u);
  for (const char* part : {"points", "mixed_facts"})
    EXPECT_EQ(found["groups"][0][part], alone["groups"][0][part]);
  for (std::size_t i = 0; i < alone["groups"][0]["figures"].size(); ++i)
    EXPECT_EQ(found["groups"][0]["figures"][i]["trend"], alone["groups"][0]["figures"][i]["trend"]);
  EXPECT_EQ(found["groups"][0]["settings"]["context.threads"], "1");
  EXPECT_EQ(found["groups"][1]["sessions"], 1);
  EXPECT_TRUE(found["groups"][1]["too_few"].get<bool>());
}

TEST_F(Trend, SaysWhatIsWrong) {
  EXPECT_EQ(run_tt(*folder_, "trend none.ttrace").code, 1);
  EXPECT_EQ(run_tt(*folder_, "trend runs --by week").code, 2);
  EXPECT_EQ(run_tt(*folder_, "trend").code, 2);
  std::filesystem::create_directory(*folder_ / "odd");
  std::filesystem::copy_file(*folder_ / "runs/day-0.ttrace", *folder_ / "odd/good.ttrace");
  write_at("log", "undated", 0, "odd");
  const Result undated = run_tt(*folder_, "trend odd");
  EXPECT_EQ(undated.code, 1);
  EXPECT_TRUE(undated.err.contains("1 session has no start time and is left out")) << undated.err;
  std::ofstream(*folder_ / "odd/text.ttrace") << "text";
  const Result damaged = run_tt(*folder_, "trend odd");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(damaged.err.contains("odd/text.ttrace: ")) << damaged.err;
}

}  // namespace
}  // namespace tt
