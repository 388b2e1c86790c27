// One session of a mixture-of-experts model: the rows of accesses, ops, steps and tensors have the
// same columns and the same values in SQL, in the CSV export and in REST.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <format>
#include <set>
#include <string>
#include <vector>

#include "tests/api/exchange/export_check.h"
#include "tests/server/models/model_files.h"
#include "tests/server/support/test_server.h"

namespace tt::test {
namespace {

using Texts = std::vector<std::string>;

// A value as text. SQL has no flags, so a flag is 0 or 1.
std::string text_of_value(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number_float()) return std::format("{}", value.get<float>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A CSV field as the same text, for a column with values like `like`.
std::string text_of_field(const std::string& field, const json& like) {
  if (field == std::string(1, '\0')) return "null";
  if (like.is_boolean()) return field == "true" ? "1" : "0";
  if (like.is_number_float()) return std::format("{}", std::stof(field));
  return field;
}

std::set<std::string> names_of(const json& row) {
  std::set<std::string> names;
  for (const auto& [name, value] : row.items()) names.insert(name);
  return names;
}

class SameRows : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ensure_backends_loaded();
    server_ = new TestServer({.model = model_files("moe").front()});
    ASSERT_TRUE(server_->wait_until_loaded());
    id_ = server_->generate({{"tokens", {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                             {"max_tokens", 6},
                             {"temperature", 0},
                             {"ignore_eos", true},
                             {"level", "verbose"},
                             {"stats_pattern", "ffn_out|l_out"},
                             {"capture", {"^l_out@S1-"}}});
    ASSERT_EQ(server_->wait_for_end(id_)["state"], "done");
  }
  static void TearDownTestSuite() { delete server_; }

  static std::string path(const std::string& of) { return "/api/v1/sessions/" + id_ + "/" + of; }
  static json rest(const std::string& of, const char* rows) {
    const TestResponse answer = server_->get(path(of));
    EXPECT_EQ(answer.status, 200) << of << ": " << answer.body;
    return answer.body.value(rows, json::array());
  }
  static json sql(const std::string& statement) {
    const TestResponse answer =
        server_->post(path("query"), json{{"sql", statement}, {"limit", 1'000'000}}.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
  // `without`: a field of REST that is no column.
  static void expect_same(const json& rows, const json& found, const char* without = "") {
    ASSERT_GT(rows.size(), 0u);
    ASSERT_EQ(rows.size(), found["rows"].size());
    const Texts columns = found["columns"];
    std::set<std::string> names = names_of(rows[0]);
    names.erase(without);
    std::set<std::string> in_sql(columns.begin(), columns.end());
    in_sql.erase("self_ns");  // for sums, which REST has as /breakdown
    ASSERT_EQ(names, in_sql);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const std::string& name = columns[c];
        if (name == "self_ns") continue;
        ASSERT_EQ(text_of_value(rows[i].at(name)), text_of_value(found["rows"][i][c]))
            << "row " << i << ", " << name;
      }
    }
  }

  static inline TestServer* server_ = nullptr;
  static inline std::string id_;
};

// The statistics were computed while the model ran, those of the table `value` from what it stored.
TEST_F(SameRows, CapturedValuesHaveTheStatisticsOfTheirOps) {
  const json rows =
      sql("SELECT v.tensor_name, o.tensor_name, v.output_min, o.output_min, v.output_max, "
          "o.output_max, "
          "v.output_mean, o.output_mean, v.output_std, o.output_std FROM value v JOIN op o USING "
          "(step, "
          "op)")["rows"];
  EXPECT_EQ(rows.size(),
            sql("SELECT * FROM op WHERE step > 0 AND tensor_name LIKE 'l_out%'")["rows"].size());
  ASSERT_EQ(rows.size(), 10U) << "five steps, two layers";
  for (const json& row : rows) {
    EXPECT_EQ(row[0], row[1]);
    EXPECT_EQ(row[2], row[3]) << row;
    EXPECT_EQ(row[4], row[5]) << row;
    for (const std::size_t i : {6U, 8U})
      EXPECT_NEAR(row[i].get<double>(), row[i + 1].get<double>(), 1e-5) << row;
  }
}

TEST_F(SameRows, CapturesThatAreNoRuleAreRefused) {
  const auto refused = [&](const char* rule) {
    const TestResponse answer = server_->post(
        "/api/v1/generate", json{{"tokens", {1, 2}}, {"capture", {rule, "l_out"}}}.dump());
    EXPECT_EQ(answer.status, 422) << answer.body;
    return answer.body["detail"].get<std::string>();
  };
  EXPECT_TRUE(refused("(").contains("not a valid regular expression"));
  EXPECT_TRUE(refused("l_out@L2-1").contains("is not a range"));
  EXPECT_TRUE(refused("@L2").contains("needs a pattern"));
}

TEST_F(SameRows, AccessesInSqlCsvAndRest) {
  json rows = json::array();
  std::string cursor;
  do {
    const json page = server_->get(path("accesses?limit=1000" + cursor)).body;
    for (const json& row : page.at("accesses")) rows.push_back(row);
    cursor = page["next"].is_null() ? "" : "&cursor=" + page["next"].get<std::string>();
  } while (!cursor.empty());
  expect_same(rows, sql("SELECT * FROM access ORDER BY step, op, access, part"));

  const auto sent = server_->client().Get(path("export?format=csv"));
  ASSERT_TRUE(sent && sent->status == 200);
  const auto csv = csv_rows(sent->body);
  ASSERT_EQ(csv.size(), rows.size() + 1);
  const Texts& columns = csv[0];
  ASSERT_EQ(columns.front(), "session");
  ASSERT_EQ(columns.size(), rows[0].size() + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(csv[i + 1][0], id_);
    for (std::size_t c = 1; c < columns.size(); ++c) {
      if (columns[c] == "self_ns") continue;
      const json& value = rows[i].at(columns[c]);
      ASSERT_EQ(text_of_field(csv[i + 1][c], value), text_of_value(value))
          << "row " << i << ", " << columns[c];
    }
  }

  // What the model has: experts, cells of the cache, files, every kind of missing value.
  for (const char* some : {"expert_id", "routing_score", "model_file", "layer_id", "qkv_type"}) {
    const auto has = [&](const json& row) { return !row.at(some).is_null(); };
    EXPECT_TRUE(std::ranges::any_of(rows, has)) << some;
    EXPECT_FALSE(std::ranges::all_of(rows, has)) << some;
  }
}

TEST_F(SameRows, AccessesOfAStepInSqlAndRest) {
  expect_same(rest("steps/2/accesses?limit=10000", "accesses"),
              sql("SELECT * FROM access WHERE step = 2 ORDER BY op, access, part"));
}

TEST_F(SameRows, OpsInSqlAndRest) {
  for (const char* step : {"0", "3"}) {
    const json rows = rest(std::format("steps/{}/ops?limit=10000", step), "ops");
    expect_same(rows, sql(std::format("SELECT * FROM op WHERE step = {} ORDER BY op", step)),
                "sources");
    const auto has_statistics = [](const json& row) { return row.at("output_min").is_number(); };
    EXPECT_TRUE(std::ranges::any_of(rows, has_statistics));
    EXPECT_FALSE(std::ranges::all_of(rows, has_statistics));
  }
}

TEST_F(SameRows, StepsInSqlAndRest) {
  expect_same(rest("steps?limit=10000", "steps"), sql("SELECT * FROM step ORDER BY step"),
              "layers");
}

TEST_F(SameRows, TensorsInSqlAndRest) {
  expect_same(rest("templates/1/tensors?limit=10000", "tensors"),
              sql("SELECT * FROM tensor WHERE template = 1 ORDER BY tensor"));
}

}  // namespace
}  // namespace tt::test
