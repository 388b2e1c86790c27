// Sets of sessions that the server recorded: REST, tt and DuckDB, which reads the exported dataset,
// give the same figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <format>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/support/recorded_sessions.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

using Ids = std::vector<std::string>;

int rises(double from, double to) { return (to > from) - (to < from); }

// Of all ways to divide the values into two sets of these sizes, the share in which they are at
// least as far apart: the definition in docs/sets.md, counted.
double divided_by_chance(const std::vector<double>& left, const std::vector<double>& right) {
  std::vector<double> all = left;
  all.insert(all.end(), right.begin(), right.end());
  const auto distance = [&](std::uint32_t chosen) {
    int sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < all.size(); ++j)
        if ((chosen >> i & 1U) != 0 && (chosen >> j & 1U) == 0) sum += rises(all[i], all[j]);
    return std::abs(sum);
  };
  const auto of_left = static_cast<int>(left.size());
  const int seen = distance((1U << left.size()) - 1);
  double as_far = 0, any = 0;
  for (std::uint32_t chosen = 0; chosen < 1U << all.size(); ++chosen) {
    if (std::popcount(chosen) != of_left) continue;
    ++any;
    as_far += distance(chosen) >= seen;
  }
  return as_far / any;
}

int sum_of_rises(const std::vector<double>& values) {
  int sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j) sum += rises(values[i], values[j]);
  return sum;
}

// Of all orders of the values, the share with as many rises or falls.
double ordered_by_chance(std::vector<double> values) {
  const int seen = std::abs(sum_of_rises(values));
  std::ranges::sort(values);
  double as_far = 0, any = 0;
  do {
    ++any;
    as_far += std::abs(sum_of_rises(values)) >= seen;
  } while (std::ranges::next_permutation(values).found);
  return as_far / any;
}

json named(const json& list, const std::string& name) {
  for (const json& row : list)
    if (row["name"] == name) return row;
  ADD_FAILURE() << "no " << name << " in " << list;
  return {};
}

// Twelve requests with prompts of different lengths, those of the two sets in turns. A longer
// prompt means more cells of the KV cache per token, and fewer bytes of weights per token of the
// prompt. One prompt of the left set is longer than the shortest one of the right set, and two have
// the same length.
class RecordedSets : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ensure_backends_loaded();
    server_ = new TestServer;
    out_ = new TempFolder;
    ASSERT_TRUE(server_->wait_until_loaded());
    constexpr std::pair<int, int> kWords[] = {{1, 5}, {2, 9}, {2, 10}, {3, 12}, {4, 14}, {6, 16}};
    for (const auto& [left, right] : kWords) {
      left_.push_back(recorded_prompt(left));
      right_.push_back(recorded_prompt(right));
      all_.push_back(left_.back());
      all_.push_back(right_.back());
    }
    run_tt(std::format("export . -q -o '{}' --format dataset", (*out_ / "lake").string()));
  }
  static void TearDownTestSuite() {
    delete out_;
    delete server_;
  }

  static std::string recorded_prompt(int words) {
    std::string prompt = "Once";
    for (int i = 1; i < words; ++i) prompt += " upon";
    return record(*server_, prompt);
  }
  // In the folder of the sessions.
  static std::string run_tt(const std::string& arguments) {
    return command_output(
        std::format("cd '{}' && '{}' {}", server_->data.string(), kTestPaths.tt, arguments));
  }
  static json tt(const std::string& arguments) {
    return json::parse(run_tt(arguments + " --json"), nullptr, false);
  }
  // A set is a folder, too.
  static std::string folder_of(const char* name, const Ids& ids) {
    const fs::path folder = *out_ / name;
    fs::create_directory(folder);
    for (const std::string& id : ids)
      fs::create_hard_link(server_->data / (id + ".ttrace"), folder / (id + ".ttrace"));
    return folder.string();
  }
  static std::string files(const Ids& ids) {
    std::string names;
    for (const std::string& id : ids) names += id + ".ttrace ";
    return names;
  }
  // A busy server is asked again, as every client does.
  static json rest(const std::string& question, const json& body) {
    for (;;) {
      const TestResponse answer = server_->post("/api/v1/sets/" + question, body.dump());
      if (answer.status == 503) {
        std::this_thread::sleep_for(100ms);
        continue;
      }
      EXPECT_EQ(answer.status, 200) << answer.body;
      return answer.body;
    }
  }
  // Rows as objects. `access` is the dataset, and `figure` has a row per session of the test and
  // figure of docs/sets.md: the place of the session in the order of recording, its set, name and
  // value.
  static json duckdb(const std::string& sql) {
    std::string members;
    for (std::size_t i = 0; i < all_.size(); ++i)
      members += std::format("{}('{}', {}, '{}')", i == 0 ? "" : ", ", all_[i], i,
                             i % 2 ? "right" : "left");
    const std::string script = std::format(
        "CREATE VIEW access AS SELECT * FROM '{}/lake/**/*.parquet';\n"
        "CREATE VIEW member AS FROM (VALUES {}) AS m(session, place, side);\n"
        "CREATE VIEW token AS SELECT session, phase, sum(token_count) AS n FROM\n"
        "  (SELECT DISTINCT session, step, phase, token_count FROM access) GROUP BY ALL;\n"
        "CREATE VIEW read AS SELECT session, phase, sum(size_bytes) AS bytes,\n"
        "  sum(size_bytes) FILTER (memory_source = 'disk') AS disk FROM access\n"
        "  WHERE NOT write GROUP BY ALL;\n"
        "CREATE TABLE figure AS SELECT place, side, 'bytes read per ' || word || ' token' AS "
        "name,\n"
        "    bytes / n AS value\n"
        "  FROM read JOIN token USING (session, phase) JOIN member USING (session)\n"
        "  JOIN (VALUES ('generate', 'generated'), ('prompt', 'prompt')) AS w(phase, word)\n"
        "  USING (phase)\n"
        "  UNION ALL SELECT place, side, 'DISK share of the bytes of a ' || word || ' token',\n"
        "    disk / bytes\n"
        "  FROM read JOIN member USING (session)\n"
        "  JOIN (VALUES ('generate', 'generated'), ('prompt', 'prompt')) AS w(phase, word)\n"
        "  USING (phase);\n{};\n",
        out_->path().string(), members, sql);
    const fs::path file = *out_ / "q.sql";
    write_bytes(file, script);
    return json::parse(command_output(std::format("duckdb -json -bail < '{}'", file.string())),
                       nullptr, false);
  }
  // By figure, in the order of recording.
  static std::map<std::string, std::vector<double>> values_of(const std::string& where) {
    std::map<std::string, std::vector<double>> values;
    for (const json& row :
         duckdb("SELECT name, value FROM figure WHERE " + where + " ORDER BY name, place"))
      values[row["name"]].push_back(row["value"]);
    return values;
  }

  static inline TestServer* server_ = nullptr;
  static inline TempFolder* out_ = nullptr;  // what is exported
  static inline Ids left_, right_, all_;
};

TEST_F(RecordedSets, SqlIsThatOfTtAndOfDuckDb) {
  const std::string sql =
      "SELECT session, phase, count(*) AS n, sum(size_bytes) AS bytes, count(DISTINCT tensor_name) "
      "AS tensors FROM access GROUP BY 1, 2 ORDER BY 1, 2";
  const json found = rest("query", {{"sessions", json::object()}, {"sql", sql}})["rows"];
  ASSERT_EQ(found.size(), 24U) << "two phases";
  EXPECT_EQ(tt(std::format("sql '*.ttrace' \"{}\"", sql))["rows"], found);
  const json rows = duckdb(sql);
  ASSERT_EQ(rows.size(), found.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    // A sum has 128 bits in DuckDB, which writes it as a text.
    const json bytes = row["bytes"].is_string() ? json(std::stoull(row["bytes"].get<std::string>()))
                                                : row["bytes"];
    EXPECT_EQ(json({row["session"], row["phase"], row["n"], bytes, row["tensors"]}), found[i]);
  }
}

TEST_F(RecordedSets, ComparisonIsThatOfTtAndOfDuckDb) {
  const json found = rest("comparison", {{"left", left_}, {"right", right_}});
  EXPECT_EQ(
      tt(std::format("compare '{}' '{}'", folder_of("left", left_), folder_of("right", right_))),
      found);
  EXPECT_EQ(found["left_sessions"], 6);
  EXPECT_EQ(found["right_sessions"], 6);

  // Medians, and the intervals of six samples: from the least to the greatest.
  const json medians = duckdb(
      "SELECT name, side, count(*) AS n, median(value) AS median, min(value) AS low, max(value) AS "
      "high FROM figure GROUP BY ALL");
  ASSERT_EQ(medians.size(), 8U) << "four figures of two sets";
  for (const json& row : medians) {
    SCOPED_TRACE(row.dump());
    const json of = named(found["figures"], row["name"])[row["side"].get<std::string>()];
    EXPECT_EQ(of["sessions"], row["n"]);
    for (const char* part : {"median", "low", "high"})
      EXPECT_NEAR(of[part].get<double>(), row[part].get<double>(), 1e-9 * row[part].get<double>());
  }
  const auto left = values_of("side = 'left'"), right = values_of("side = 'right'");
  std::size_t different = 0;
  for (const auto& [name, values] : left) {
    SCOPED_TRACE(name);
    const json of = named(found["figures"], name);
    EXPECT_NEAR(of["p"].get<double>(), divided_by_chance(values, right.at(name)), 1e-12);
    different += of["different"].get<bool>();
  }
  // Benjamini-Hochberg: the k least of n are called different if the k-th is at most 0.05 k / n.
  std::vector<std::pair<double, bool>> judged;
  for (const char* list : {"figures", "rows"})
    for (const json& row : found[list]) judged.emplace_back(row["p"], row["different"]);
  std::ranges::sort(judged);
  std::size_t called = 0;
  for (std::size_t k = 1; k <= judged.size(); ++k)
    if (judged[k - 1].first <= 0.05 * static_cast<double>(k) / static_cast<double>(judged.size()))
      called = k;
  for (std::size_t k = 0; k < judged.size(); ++k) EXPECT_EQ(judged[k].second, k < called) << k;
  EXPECT_GT(different, 0U);
  EXPECT_LT(called, judged.size()) << "something does not differ";
}

// Of eight sessions, so that all orders can be counted.
TEST_F(RecordedSets, TrendIsThatOfTtAndOfDuckDb) {
  constexpr std::size_t kSessions = 8;
  const Ids some(all_.begin(), all_.begin() + kSessions);
  const json found = rest("trend", {{"sessions", some}, {"by", "session"}});
  EXPECT_EQ(tt("trend --by session " + files(some)), found);
  ASSERT_EQ(found["groups"].size(), 1U);
  const json& group = found["groups"][0];
  for (std::size_t i = 0; i < kSessions; ++i)
    EXPECT_EQ(group["points"][i]["sessions"], json{some[i]}) << "in the order of recording";
  const std::string where = std::format("place < {}", kSessions);
  for (const auto& [name, values] : values_of(where)) {
    SCOPED_TRACE(name);
    const json of = named(group["figures"], name);
    ASSERT_EQ(of["points"].size(), kSessions);
    for (std::size_t i = 0; i < kSessions; ++i)
      EXPECT_NEAR(of["points"][i]["median"].get<double>(), values[i], 1e-9 * values[i]);
    EXPECT_EQ(of["trend"]["rises"], sum_of_rises(values));
    EXPECT_NEAR(of["trend"]["p"].get<double>(), ordered_by_chance(values), 1e-12);
  }
  // The slope: the median over all pairs.
  const json slopes = duckdb(std::format(
      "SELECT a.name, median((b.value - a.value) / (b.place - a.place)) AS slope FROM figure a "
      "JOIN "
      "figure b ON a.name = b.name AND a.place < b.place WHERE b.place < {} GROUP BY ALL",
      kSessions));
  ASSERT_EQ(slopes.size(), 4U);
  for (const json& row : slopes) {
    const double slope = row["slope"];
    EXPECT_NEAR(named(group["figures"], row["name"])["trend"]["slope"].get<double>(), slope,
                1e-9 * std::abs(slope))
        << row;
  }
  // On one day there is no trend over days, and the median of the day is that of all sessions.
  const json day = rest("trend", {{"sessions", all_}});
  EXPECT_EQ(tt("trend ."), day);
}

TEST_F(RecordedSets, GeneralityIsThatOfTt) {
  const Ids some(all_.begin(), all_.begin() + 4);
  const json found = rest("generality", {{"sessions", some}});
  EXPECT_EQ(tt("generality " + files(some)), found);
  EXPECT_EQ(found["pairs"].size(), 16U);
}

}  // namespace
}  // namespace tt::test
