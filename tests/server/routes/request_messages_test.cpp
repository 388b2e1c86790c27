// What the server says about requests with mistakes: what is wrong and what to do.
#include <gtest/gtest.h>

#include <string>

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
      {kGenerate, R"({"n_predict":5})", 400, "Did you mean max_tokens?"},
      {kGenerate, R"({"promt":"x"})", 400, "Unknown field \"promt\". Did you mean prompt?"},
      {kQuery, R"({"query":"SELECT 1"})", 400, "Unknown field \"query\". Did you mean sql?"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.path) + " " + (c.body == nullptr ? "" : c.body));
    const TestResponse answer =
        c.body == nullptr ? server.get(c.path) : server.post(c.path, c.body);
    EXPECT_EQ(answer.status, c.status);
    EXPECT_TRUE(answer.body.value("detail", "").contains(c.detail)) << answer.body;
  }
}

}  // namespace
}  // namespace tt::test
