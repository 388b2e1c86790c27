// SQL over HTTP: results, rejected statements, and that expensive statements do not block other
// clients.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/server/support/recorded_sessions.h"
#include "tests/server/support/test_server.h"
#include "tests/support/command_output.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

constexpr const char* kEndlessQuery =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

// A server with one finished session, "small", of `steps` steps.
class QueryServer : public TestServer {
 public:
  explicit QueryServer(std::uint32_t steps = 3) {
    std::vector<Step> all;
    for (std::uint32_t i = 0; i < steps; ++i) all.push_back(small_step(i));
    const SmallSession session(all);
    file = folder.path() / "small.ttrace";
    std::filesystem::copy_file(session.path, file);
  }
  TestResponse query(const json& body) { return post("/api/v1/sessions/small/query", body.dump()); }
  std::filesystem::path file;
};

TEST(QueryRoutes, RowsInFourFormats) {
  QueryServer server;
  const std::string sql =
      "SELECT step, tensor_name, NULL AS n, 0.5 AS r, x'00ff' AS b FROM access WHERE write LIMIT 2";
  const TestResponse rows = server.query({{"sql", sql}});
  ASSERT_EQ(rows.status, 200) << rows.body;
  EXPECT_EQ(rows.body["columns"], json::parse(R"(["step","tensor_name","n","r","b"])"));
  EXPECT_EQ(rows.body["rows"],
            json::parse(R"([[0,"embd",null,0.5,"00ff"],[0,"attn_norm-0",null,0.5,"00ff"]])"));
  EXPECT_EQ(rows.body["more"], false);
  EXPECT_TRUE(rows.body["error"].is_null());

  const auto text = [&](const char* format) {
    const auto result =
        server.client().Post("/api/v1/sessions/small/query",
                             json{{"sql", sql}, {"format", format}}.dump(), "application/json");
    return result ? result->body : "";
  };
  EXPECT_EQ(text("ndjson"),
            "{\"step\":0,\"tensor_name\":\"embd\",\"n\":null,\"r\":0.5,\"b\":\"00ff\"}\n"
            "{\"step\":0,\"tensor_name\":\"attn_norm-0\",\"n\":null,\"r\":0.5,\"b\":\"00ff\"}\n");
  EXPECT_EQ(text("csv"), "step,tensor_name,n,r,b\n0,embd,,0.5,00ff\n0,attn_norm-0,,0.5,00ff\n");
  const std::string parquet = text("parquet");
  EXPECT_TRUE(parquet.starts_with("PAR1") && parquet.ends_with("PAR1")) << parquet.size();
}

TEST(QueryRoutes, LargeResultsAreStreamedAndLimited) {
  QueryServer server(2000);
  // A busy machine needs longer than the usual time for all rows.
  const TestResponse all =
      server.query({{"sql", "SELECT * FROM access"}, {"limit", 1000000}, {"timeout_ms", 60000}});
  ASSERT_EQ(all.status, 200);
  EXPECT_EQ(all.body["rows"].size(), 32'000u);
  EXPECT_EQ(all.body["more"], false);
  const TestResponse cut =
      server.query({{"sql", "SELECT * FROM access"}, {"limit", 20000}, {"timeout_ms", 60000}});
  EXPECT_EQ(cut.body["rows"].size(), 20'000u);
  EXPECT_EQ(cut.body["more"], true);
  EXPECT_EQ(server.query({{"sql", "SELECT * FROM access"}}).body["rows"].size(), 1000u);
}

// The first rows arrive while the query runs; the client disconnects early.
TEST(QueryRoutes, RowsAreStreamedWhileQueryRuns) {
  QueryServer server(500);
  // Each row scans the session: a million rows exceed the time limit by far.
  const json slow = {{"sql",
                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, "
                      "hex(zeroblob(1000)), (SELECT count(*) FROM access WHERE n.i > 0) FROM n"},
                     {"limit", 1000000},
                     {"timeout_ms", 60000},
                     {"format", "ndjson"}};
  std::string received;
  std::size_t rows = 0;
  auto client = server.client();
  const auto result =
      client.Post("/api/v1/sessions/small/query", httplib::Headers{}, slow.dump(),
                  "application/json", [&](const char* bytes, std::size_t count) {
                    received.append(bytes, count);
                    rows = static_cast<std::size_t>(std::ranges::count(received, '\n'));
                    return rows < 100;  // then disconnects
                  });
  EXPECT_FALSE(result) << "the response must be cut off";
  EXPECT_GE(rows, 100u);
  EXPECT_LT(rows, 1000u) << "rows must be streamed";
  EXPECT_EQ(json::parse(received.substr(0, received.find('\n')))["i"], 1);
  // Its slot is free again; there are only two.
  EXPECT_TRUE(wait_until([&] { return server.query({{"sql", "SELECT 1"}}).status == 200; }));
}

TEST(QueryRoutes, ErrorsReportReasonAndPosition) {
  QueryServer server;
  const TestResponse unknown = server.query({{"sql", "SELECT nothing FROM access"}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.type, "application/problem+json");
  EXPECT_EQ(unknown.body["code"], "bad_query");
  EXPECT_EQ(unknown.body["position"], 7);
  EXPECT_EQ(server.query({{"sql", "SELECT * FROM acces"}}).body["position"], 14);
  for (const char* sql : {"ATTACH '/tmp/x' AS x", "PRAGMA journal_mode", "DELETE FROM step",
                          "SELECT load_extension('x')", "SELECT * FROM sqlite_schema"}) {
    const TestResponse rejected = server.query({{"sql", sql}});
    EXPECT_EQ(rejected.status, 403) << sql << rejected.body;
    EXPECT_EQ(rejected.body["code"], "query_refused");
    EXPECT_TRUE(rejected.body["position"].is_number()) << sql << rejected.body;
  }
  const TestResponse slow = server.query({{"sql", kEndlessQuery}, {"timeout_ms", 50}});
  EXPECT_EQ(slow.status, 422);
  EXPECT_EQ(slow.body["code"], "query_stopped");
  EXPECT_EQ(server.query({{"sql", "SELECT length(zeroblob(1000000))"}}).body["code"],
            "query_stopped");

  for (const char* body :
       {"", "[]", "{}", R"({"sql": 1})", R"({"sql": "SELECT 1", "limit": 0})",
        R"({"sql": "SELECT 1", "limit": 1000001})", R"({"sql": "SELECT 1", "timeout_ms": -1})",
        R"({"sql": "SELECT 1", "format": "xml"})", R"({"sql": "SELECT 1", "parameters": []})"}) {
    EXPECT_EQ(server.post("/api/v1/sessions/small/query", body).status, 400) << body;
  }
  EXPECT_EQ(server.post("/api/v1/sessions/none/query", R"({"sql": "SELECT 1"})").status, 404);
  EXPECT_EQ(server.get("/api/v1/sessions/small/query").status, 405);
}

TEST(QueryRoutes, DamageIsReportedInTheMiddleOfAResult) {
  QueryServer server(2000);
  damage_last_quarter(server.file);
  // Aggregates are computed over the steps before the damage.
  for (const auto& [sql, per_step] : {std::pair{"SELECT count(*) FROM step", 1},
                                      {"SELECT sum(accesses) FROM access_by_layer", 16},
                                      {"SELECT sum(accesses) AS again FROM access_by_layer", 16}}) {
    SCOPED_TRACE(sql);
    const auto sum = server.client().Post("/api/v1/sessions/small/query",
                                          json({{"sql", sql}}).dump(), "application/json");
    ASSERT_TRUE(sum);
    EXPECT_EQ(sum->status, 200) << sum->body;
    const int whole = std::stoi(sum->get_header_value("X-Whole-Steps"));
    EXPECT_EQ(json::parse(sum->body)["rows"][0][0], whole * per_step);
    EXPECT_GT(whole, 100);
  }
  const TestResponse rows = server.query({{"sql", "SELECT * FROM access"}, {"limit", 1000000}});
  EXPECT_EQ(rows.status, 200);
  EXPECT_EQ(rows.body["error"]["code"], "session_damaged");
  EXPECT_GT(rows.body["rows"].size(), 1000u);
}

TEST(QueryRoutes, ExpensiveStatementsDoNotBlockOthers) {
  QueryServer server(50);
  const char* statements[] = {
      kEndlessQuery,
      "SELECT count(*) FROM access a, access b, access c, access d",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT max(i) FROM n",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT median(i) FROM n",
      ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
       "SELECT sum(length(randomblob(200000))) FROM n"),
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
  };
  std::atomic<int> stopped = 0, busy = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> attackers;
  for (const char* statement : statements) {
    attackers.emplace_back([&, statement] {
      for (int round = 0; round < 3; ++round) {
        const TestResponse answer =
            server.query({{"sql", statement}, {"timeout_ms", 700}, {"limit", 1000000}});
        if (answer.body.value("code", "") == "queries_busy") {
          ++busy;
        } else if (answer.body.value("code", "") == "query_stopped" ||
                   (answer.body.contains("error") && answer.body["error"].is_object()) ||
                   answer.body.value("more", false)) {
          ++stopped;
        } else {
          ADD_FAILURE() << statement << answer.status << answer.body.dump().substr(0, 200);
        }
      }
    });
  }
  std::thread other_client([&] {
    while (!done) {
      EXPECT_EQ(server.get("/api/v1/health").status, 200);
      EXPECT_EQ(server.get("/api/v1/sessions/small/accesses?limit=10").status, 200);
    }
  });
  for (std::thread& attacker : attackers) attacker.join();
  done = true;
  other_client.join();
  EXPECT_GT(stopped, 0);
  EXPECT_GT(busy, 0);
  EXPECT_EQ(server.query({{"sql", "SELECT count(*) FROM access"}}).body["rows"][0][0], 800);
}

TEST(QueryRoutes, StatementIsCancelledOnDisconnect) {
  QueryServer server;
  for (int i = 0; i < 4; ++i) {  // two would occupy all slots
    httplib::Client client = server.client();
    client.set_read_timeout(0, 300'000);
    const auto result =
        client.Post("/api/v1/sessions/small/query",
                    json{{"sql", kEndlessQuery}, {"timeout_ms", 60000}}.dump(), "application/json");
    // Those before may still be ending.
    EXPECT_TRUE(!result || (i > 0 && result->status == 503));
  }
  EXPECT_TRUE(wait_until([&] { return server.query({{"sql", "SELECT 1"}}).status == 200; }, 30s));
}

// All interfaces return the same five totals.
TEST(QueryRoutes, ShellPythonAndServerAgree) {
  QueryServer server(40);
  const std::string sql =
      "SELECT (SELECT count(*) FROM access), (SELECT sum(size_bytes) FROM access WHERE NOT write), "
      "(SELECT sum(size_bytes) FROM access WHERE write), (SELECT count(*) FROM step), "
      "(SELECT sum(duration_ns) FROM op)";
  const json totals = server.query({{"sql", sql}}).body["rows"][0];
  const auto output_of = [&](const std::string& command) {
    const std::string all =
        std::format("cd {} && {} > out 2> err", server.folder.path().string(), command);
    EXPECT_EQ(std::system(all.c_str()), 0) << command;
    std::ifstream file(server.folder.path() / "out");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string expected = std::format("{}|{}|{}|{}|{}\n", totals[0].dump(), totals[1].dump(),
                                           totals[2].dump(), totals[3].dump(), totals[4].dump());
  EXPECT_EQ(totals[0], 640);
  EXPECT_EQ(
      output_of(std::format("sqlite3 small.ttrace '.load {}' '{}'", kTestPaths.extension, sql)),
      expected);
  EXPECT_EQ(output_of(std::format("sqlite3 -readonly small.ttrace '.load {}' '{}'",
                                  kTestPaths.extension, sql)),
            expected);
  // An attached file: virtual tables under other names; no file is modified.
  EXPECT_EQ(output_of(std::format("sqlite3 :memory: '.load {}' \"ATTACH 'small.ttrace' AS s\" "
                                  "'CREATE VIRTUAL TABLE temp.a USING access(s)' "
                                  "'SELECT count(*) FROM a'",
                                  kTestPaths.extension)),
            "640\n");
  {
    std::ofstream script(server.folder.path() / "ask.py");
    script << "import sqlite3\n"
           << "db = sqlite3.connect('file:small.ttrace?mode=ro', uri=True)\n"
           << "db.enable_load_extension(True)\n"
           << "db.load_extension('" << kTestPaths.extension << "')\n"
           << "print('|'.join(str(v) for v in db.execute(\"\"\"" << sql << "\"\"\").fetchone()))\n"
           << "try:\n"
           << "    memory = sqlite3.connect(':memory:')\n"
           << "    memory.enable_load_extension(True)\n"
           << "    memory.load_extension('" << kTestPaths.extension << "')\n"
           << "    memory.execute('SELECT * FROM access')\n"
           << "except sqlite3.OperationalError as error:\n"
           << "    print(error)\n";
  }
  EXPECT_EQ(output_of("python3 ask.py"),
            expected + "\"main\" is not a session file. Open one: sqlite3 session.ttrace\n");
  EXPECT_EQ(server.query({{"sql", sql}}).body["rows"][0], totals) << "the file must be unchanged";
}

// A token can be a partial UTF-8 sequence, which is invalid in CSV and in Python's sqlite3.
TEST(QueryRoutes, PartialUtf8IsReplacedInTextAndKeptInStorage) {
  TestServer server;
  RandomSession half;
  half.info = SmallSession::small_info();
  half.info.id = "half";
  half.info.state = SessionState::Done;
  half.tokens = {{.index = 0, .text = "\xe2\x82"}, {.index = 1, .text = "\xac \xe2\x82\xac"}};
  ASSERT_TRUE(write_session(server.folder / "half.ttrace", half).has_value());
  const auto csv = server.client().Post(
      "/api/v1/sessions/half/query",
      json{{"sql", "SELECT text FROM token"}, {"format", "csv"}}.dump(), "application/json");
  ASSERT_TRUE(csv);
  EXPECT_EQ(csv->body, "text\n\uFFFD\n\uFFFD \u20ac\n");

  std::ofstream(server.folder / "ask.py")
      << "import json, sqlite3\n"
      << "db = sqlite3.connect('file:half.ttrace?mode=ro', uri=True)\n"
      << "db.enable_load_extension(True)\n"
      << "db.load_extension('" << kTestPaths.extension << "')\n"
      << "print(json.dumps([db.execute('SELECT text FROM token').fetchall(),\n"
      << "                  db.execute('SELECT hex(text) FROM tt_token').fetchall()]))\n";
  EXPECT_EQ(json::parse(command_output(std::format("cd '{}' && python3 ask.py",
                                                   server.folder.path().string())),
                        nullptr, false),
            json::parse(R"([[["\ufffd"], ["\ufffd \u20ac"]], [["E282"], ["AC20E282AC"]]])"));
}

}  // namespace
}  // namespace tt::test
