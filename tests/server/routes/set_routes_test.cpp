// Questions about sets of sessions over HTTP: the answers are those of one session at a time, and
// of the functions of analysis/.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <format>
#include <string>
#include <thread>
#include <vector>

#include "analysis/report/set_comparison.h"
#include "analysis/sets/generality.h"
#include "analysis/sets/set_trend.h"
#include "api/json/result_json.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/server/support/test_server.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

constexpr const char* kQuery = "/api/v1/sets/query";
constexpr const char* kComparison = "/api/v1/sets/comparison";
constexpr const char* kGenerality = "/api/v1/sets/generality";
constexpr const char* kTrend = "/api/v1/sets/trend";

// Sessions run-0 to run-5 of two models.
class SetServer : public TestServer {
 public:
  SetServer() : TestServer({.model = {}}) {
    for (std::uint64_t i = 0; i < 6; ++i) {
      RandomSession session = plausible_session(i % 3, 20 + 5 * i);
      session.info.id = std::format("run-{}", i);
      session.info.start_utc_ns = static_cast<std::int64_t>(20'000 + i) * 86'400'000'000'000;
      session.info.model_files = {{i < 2 ? "a/one.gguf" : "a/two.gguf", 20000, 0, "0123"},
                                  {"a/rest.gguf", 20000, 0, ""}};
      ids.push_back(session.info.id);
      EXPECT_TRUE(write_session(data / (ids.back() + ".ttrace"), session).has_value());
    }
  }
  // A busy server is asked again, as every client does.
  TestResponse ask(const std::string& path, const std::string& body) {
    for (;;) {
      TestResponse answer = post(path, body);
      if (answer.status != 503) return answer;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  json rows(const json& of, const std::string& sql) {
    const TestResponse answer = ask(kQuery, json{{"sessions", of}, {"sql", sql}}.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body["rows"];
  }
  std::vector<std::string> ids;
};

TEST(SetRoutes, SqlHasTheRowsOfEachSession) {
  SetServer server;
  json expected = json::array();
  for (const std::string& id : server.ids) {
    const TestResponse one =
        server.ask("/api/v1/sessions/" + id + "/query",
                   R"({"sql": "SELECT count(*), sum(size_bytes), sum(step) FROM access"})");
    json row = one.body["rows"][0];
    row.insert(row.begin(), id);
    expected.push_back(std::move(row));
  }
  const std::string sql =
      "SELECT session, count(*), sum(size_bytes), sum(step) FROM access GROUP BY session ORDER BY "
      "1";
  EXPECT_EQ(server.rows(server.ids, sql), expected);
  EXPECT_EQ(server.rows(json::object(), sql), expected) << "an empty filter: all sessions";
  EXPECT_EQ(server.rows({{"model", "one.gguf"}}, sql), json({expected[0], expected[1]}));
  EXPECT_EQ(server.rows({{"q", "RUN-3"}, {"state", "done"}}, sql), json({expected[3]}));
  // An id that is listed twice counts once.
  EXPECT_EQ(server.rows({"run-1", "run-1"}, "SELECT count(*) FROM session"), json({{1}}));
  const auto csv = server.client().Post(
      kQuery,
      json{{"sessions", {"run-2"}}, {"sql", "SELECT session FROM step LIMIT 1"}, {"format", "csv"}}
          .dump(),
      "application/json");
  ASSERT_TRUE(csv);
  EXPECT_EQ(csv->body, "session\nrun-2\n");
}

TEST(SetRoutes, SaysWhatIsWrong) {
  SetServer server;
  struct Case {
    const char *path, *body;
    int status;
    const char* detail;
  };
  const Case cases[] = {
      {kQuery, R"({"sql": "SELECT 1"})", 400, "\"sessions\" must be a list of ids"},
      {kQuery, R"({"sessions": "run-0", "sql": "SELECT 1"})", 400, "must be a list of ids"},
      {kQuery, R"({"sessions": [], "sql": "SELECT 1"})", 400, "must have 1 to 1000 ids"},
      {kQuery, R"({"sessions": [1], "sql": "SELECT 1"})", 400, "as strings"},
      {kQuery, R"({"sessions": ["none"], "sql": "SELECT 1"})", 404, "no session none"},
      {kQuery, R"({"sessions": ["../run-0"], "sql": "SELECT 1"})", 404, "no session"},
      {kQuery, R"({"sessions": {"model": "none.gguf"}, "sql": "SELECT 1"})", 404, "No session"},
      {kQuery, R"({"sessions": {"modell": "x"}, "sql": "SELECT 1"})", 400, "Did you mean model?"},
      {kQuery, R"({"sessions": {"state": "good"}, "sql": "SELECT 1"})", 400, "one of running"},
      {kQuery, R"({"sessions": {"q": 1}, "sql": "SELECT 1"})", 400, "must be a text"},
      {kQuery, R"({"sessions": ["run-0"]})", 400, "\"sql\" must be a string"},
      {kQuery, R"({"sessions": ["run-0"], "sql": "SELECT 1", "rows": 1})", 400, "Unknown field"},
      {kQuery, R"({"sessions": ["run-0"], "sql": "SELECT nothing FROM step"})", 400, "nothing"},
      {kQuery, R"({"sessions": ["run-0"], "sql": "PRAGMA journal_mode"})", 403,
       "PRAGMA is not allowed"},
      {kComparison, R"({"left": ["run-0"]})", 400, "\"right\" must be a list of ids"},
      {kComparison, R"({"left": ["run-0"], "right": ["run-9"]})", 404, "no session run-9"},
      {kComparison, R"({"left": {}, "right": {}, "by": "time"})", 400, "\"by\" must be one of"},
      {kComparison, R"({"left": {}, "right": {}, "clean": 1})", 400, "true or false"},
      {kGenerality, R"({"sessions": ["run-0"]})", 400, "Name several"},
      {kGenerality, R"({"sessions": {}, "slots": 0})", 400, "integer from 1 to"},
      {kTrend, R"({"by": "day"})", 400, "\"sessions\" must be a list of ids"},
      {kTrend, R"({"sessions": ["run-9"]})", 404, "no session run-9"},
      {kTrend, R"({"sessions": {}, "by": "week"})", 400, "\"by\" must be one of day, session"},
      {kTrend, R"({"sessions": {}, "disturbed": "no"})", 400, "true or false"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.path) + " " + c.body);
    const TestResponse answer = server.ask(c.path, c.body);
    EXPECT_EQ(answer.status, c.status) << answer.body;
    EXPECT_TRUE(answer.body.value("detail", "").contains(c.detail)) << answer.body;
  }
}

// The planner is as busy with a statement over a set, whose column `session` only a set has.
TEST(SetRoutes, StatementsAreLimitedAsThoseOfOneSession) {
  SetServer server;
  std::string sql = "WITH t0 AS (SELECT session AS a FROM step)";
  for (int i = 1; i <= 30; ++i)
    sql += std::format(", t{0} AS (SELECT a FROM t{1} UNION ALL SELECT a FROM t{1})", i, i - 1);
  sql += " SELECT count(*) FROM t30";
  const auto refused = [&](const json& body) {
    const TestResponse answer = server.ask(kQuery, body.dump());
    EXPECT_EQ(answer.status, 422) << answer.body;
    EXPECT_EQ(answer.body["code"], "query_stopped") << answer.body;
  };
  refused({{"sessions", json::object()}, {"sql", sql}});
  refused({{"sessions", json::object()},
           {"sql",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM "
            "n"},
           {"timeout_ms", 50}});
  const TestResponse cut = server.ask(
      kQuery,
      json{{"sessions", json::object()}, {"sql", "SELECT * FROM access"}, {"limit", 7}}.dump());
  EXPECT_EQ(cut.body["rows"].size(), 7U);
  EXPECT_EQ(cut.body["more"], true);
}

// A damaged session is named, and the others can be queried.
TEST(SetRoutes, NamesADamagedSession) {
  SetServer server;
  std::filesystem::remove(server.data / "run-4.ttrace");
  write_small_steps(server.data / "run-4.ttrace", "run-4", 2000);
  damage_last_quarter(server.data / "run-4.ttrace");
  const json body = {{"sessions", json::object()}, {"sql", "SELECT count(*) FROM op"}};
  // An answer that takes seconds has begun with 200 and a space; then the problem is its body.
  const TestResponse answer = server.ask(kQuery, body.dump());
  EXPECT_EQ(answer.body["status"], 500) << answer.body;
  EXPECT_TRUE(answer.body.value("detail", "").contains("Session run-4")) << answer.body;
  EXPECT_EQ(
      server.rows(json::object(),
                  "SELECT count(DISTINCT session) FROM op WHERE session IN ('run-3', 'run-5')"),
      json({{2}}));
  const TestResponse compared =
      server.ask(kComparison, R"({"left": ["run-3"], "right": ["run-4"]})");
  EXPECT_EQ(compared.body["status"], 500) << compared.body;
  EXPECT_TRUE(compared.body.value("detail", "").contains("Session run-4")) << compared.body;
}

TEST(SetRoutes, ComparisonAndGeneralityAreThoseOfTheFunctions) {
  SetServer server;
  std::vector<SetMember> left, right;
  for (std::size_t i = 0; i < server.ids.size(); ++i) {
    const auto reader = SessionReader::open(server.data / (server.ids[i] + ".ttrace"));
    ASSERT_TRUE(reader.has_value());
    const auto index = SessionIndex::build(*reader);
    ASSERT_TRUE(index.has_value());
    auto member = set_member(*index, *reader, Axis::Layer);
    ASSERT_TRUE(member.has_value()) << member.error().message;
    (i < 2 ? left : right).push_back(*std::move(member));
  }
  const TestResponse compared =
      server.ask(kComparison,
                 R"({"left": {"model": "one.gguf"}, "right": ["run-5", "run-4", "run-3", "run-2"],
          "by": "layer"})");
  ASSERT_EQ(compared.status, 200) << compared.body;
  EXPECT_EQ(compared.body, json::parse(text_of(to_json(compare_sets(left, right)))));
  EXPECT_EQ(compared.body["left_sessions"], 2);
  EXPECT_FALSE(compared.body["rows"].empty());
  // Another body is another question.
  const TestResponse swapped = server.ask(
      kComparison, R"({"left": ["run-2", "run-3", "run-4"], "right": {"model": "one.gguf"}})");
  EXPECT_EQ(swapped.body["left_sessions"], 3);

  const auto open = [&](std::size_t i) {
    return SessionReader::open(server.data / (server.ids[i] + ".ttrace"));
  };
  const auto found = generality(server.ids, open, {.slots = 3, .memory = Bytes{5000}});
  ASSERT_TRUE(found.has_value());
  const TestResponse tried =
      server.ask(kGenerality, R"({"sessions": {}, "slots": 3, "memory": 5000})");
  ASSERT_EQ(tried.status, 200) << tried.body;
  EXPECT_EQ(tried.body, json::parse(text_of(to_json(*found))));
  EXPECT_EQ(tried.body["pairs"].size(), 36U);
}

TEST(SetRoutes, TrendIsThatOfTheFunction) {
  SetServer server;
  std::vector<TrendMember> members;
  for (const std::string& id : server.ids) {
    const auto reader = SessionReader::open(server.data / (id + ".ttrace"));
    ASSERT_TRUE(reader.has_value());
    const auto index = SessionIndex::build(*reader);
    ASSERT_TRUE(index.has_value());
    auto member = trend_member(id, *index, *reader);
    ASSERT_TRUE(member.has_value()) << member.error().message;
    members.push_back(*std::move(member));
  }
  const TestResponse days = server.ask(kTrend, R"({"sessions": {}})");
  ASSERT_EQ(days.status, 200) << days.body;
  EXPECT_EQ(days.body, json::parse(text_of(to_json(trend_over(members)))));
  EXPECT_EQ(days.body["groups"].size(), 2U) << "of two models";
  const TestResponse sessions =
      server.ask(kTrend, R"({"sessions": {}, "by": "session", "disturbed": true})");
  ASSERT_EQ(sessions.status, 200) << sessions.body;
  const TrendQuery query{.by = TrendBy::Session, .leave_out = LeaveOut::Nothing};
  EXPECT_EQ(sessions.body, json::parse(text_of(to_json(trend_over(members, query)))));
}

}  // namespace
}  // namespace tt::test
