// What the server says about requests with mistakes: what is wrong and what to do.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "tests/server/support/test_server.h"

namespace tt::test {
namespace {

TEST(RequestMessages, NameWhatWasMeant) {
  TestServerOptions options;
  options.model = "";
  TestServer server(options);
  struct Case {
    const char *path, *body;  // body null: GET
    int status;
    const char* detail;  // part of it
  };
  constexpr const char* kGenerate = "/api/v1/generate";
  constexpr const char* kQuery = "/api/v1/sessions/none/query";
  const Case cases[] = {
      {"/v1/chat/completions", "{}", 404, "Did you mean POST /api/v1/generate?"},
      {"/completion", "{}", 404, "Did you mean POST /api/v1/generate?"},
      {"/props", nullptr, 404, "Did you mean GET /api/v1/server?"},
      {"/slots", nullptr, 404, "Did you mean GET /api/v1/generate?"},
      {"/api/v1/session", nullptr, 404, "Did you mean /api/v1/sessions?"},
      {"/api/v1/sessions/", nullptr, 404, "Did you mean /api/v1/sessions?"},
      {"/api/v1/sessions/s1/step", nullptr, 404, "Did you mean /api/v1/sessions/s1/steps?"},
      {"/api/v1/sessions?limits=3", nullptr, 400, "Unknown parameter \"limits\"."},
      {kGenerate, "{prompt: hello}", 400, "The body is not valid JSON: see byte 2."},
      {kGenerate, "[]", 400, "JSON object"},
      {kGenerate, R"({"n_predict":5})", 400, "Use \"max_tokens\"."},
      {kGenerate, R"({"promt":"x"})", 400, "Unknown field \"promt\". Did you mean prompt?"},
      {kGenerate, R"({"prompt":"x","cache_prompt":true})", 400,
       "Unknown field \"cache_prompt\". Use \"reuse_prefix\"."},
      {kQuery, R"({"query":"SELECT 1"})", 400, "Unknown field \"query\". Did you mean sql?"},
      {"/api/v1/live", nullptr, 426, "is a WebSocket: connect to it with ws://"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.path) + " " + (c.body == nullptr ? "" : c.body));
    const TestResponse answer =
        c.body == nullptr ? server.get(c.path) : server.post(c.path, c.body);
    EXPECT_EQ(answer.status, c.status);
    EXPECT_TRUE(answer.body.value("detail", "").contains(c.detail)) << answer.body;
  }
}

// A session, and what is not one.
TEST(RequestMessages, SayWhatToSend) {
  ensure_backends_loaded();
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate({{"prompt", "x"}, {"max_tokens", 2}});
  server.wait_for_end(id);
  const std::string session = "/api/v1/sessions/" + id;
  for (const auto& [path, status, detail] :
       {std::tuple{"/heatmap?width=abc&height=10", 400,
                   "\"width\" must be a whole number from 1 to"},
        {"/steps/first/accesses", 404, "\"first\" is not the number of a step."},
        {"/templates/99/nodes", 404, "no template 99: it has"}}) {
    const TestResponse answer = server.get(session + path);
    EXPECT_EQ(answer.status, status) << path;
    EXPECT_TRUE(answer.body.value("detail", "").contains(detail)) << answer.body;
  }
  const TestResponse restored = server.post(session + "/restore", "");
  EXPECT_EQ(restored.status, 404);
  EXPECT_TRUE(restored.body.value("detail", "").contains("is not deleted: there is nothing"))
      << restored.body;
  const TestResponse query =
      server.post(session + "/query", R"({"sql":"SELECT step sum(op) FROM op"})");
  EXPECT_TRUE(query.body.value("detail", "").contains("SELECT column, column FROM table"))
      << query.body;
  for (const auto& [body, detail] : {std::pair{"hello", "Content-Type: application/x-ndjson"},
                                     {"", "The body is empty."},
                                     {"GGUF....", "The file is a model (GGUF), not a session."}}) {
    const TestResponse answer = server.post("/api/v1/sessions", body, "application/octet-stream");
    EXPECT_EQ(answer.status, 422) << answer.body;
    EXPECT_TRUE(answer.body.value("detail", "").contains(detail)) << answer.body;
  }
}

}  // namespace
}  // namespace tt::test
