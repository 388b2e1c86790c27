// API key checks of the complete server.
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <string>

#include "api/json/problem.h"
#include "server/http/rejections.h"
#include "tests/server/frontend/raw_client.h"
#include "tests/server/support/test_server.h"

namespace tt::test {
namespace {

constexpr const char* kKey = "a-key-of-some-length";

TestServerOptions with_key() {
  TestServerOptions options;
  options.model = "/nonexistent/model.gguf";
  options.frontend.key = kKey;
  return options;
}

TEST(ServerAccess, WithoutKeyEveryRouteReturnsProblem) {
  TestServer server(with_key());
  auto client = server.client();
  for (const char* path : {"/", "/api/v1/sessions", "/api/v1/models", "/api/v1/none", "/metrics",
                           "/api/openapi.json", "/api/docs", "/assets/none.js", "/login"}) {
    const auto answer = client.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 401) << path;
    EXPECT_EQ(answer->get_header_value("Content-Type"), "application/problem+json") << path;
    EXPECT_EQ(answer->get_header_value("WWW-Authenticate"), "Bearer realm=\"tensor-trace\"");
    const json problem = json::parse(answer->body);
    EXPECT_EQ(problem["code"], "unauthorized");
    EXPECT_EQ(problem["status"], 401);
  }
  const auto post = client.Post("/api/v1/generate", "{}", "application/json");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 401);

  const auto health = client.Get("/api/v1/health");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  const json status = json::parse(health->body);
  EXPECT_EQ(status.size(), 1u) << status;
  EXPECT_TRUE(status.contains("status"));
}

TEST(ServerAccess, KeyGrantsAccessAndHeadMatchesGet) {
  TestServer server(with_key());
  auto client = server.client();
  client.set_bearer_token_auth(kKey);
  for (const char* path : {"/", "/api/v1/health", "/api/v1/models", "/api/v1/sessions",
                           "/api/openapi.json", "/api/docs", "/api/v1/sessions/none"}) {
    const auto get = client.Get(path);
    const auto head = client.Head(path);
    ASSERT_TRUE(get && head) << path;
    EXPECT_NE(get->status, 401) << path;
    EXPECT_EQ(head->status, get->status) << path;
    EXPECT_TRUE(head->body.empty()) << path;
    for (const char* name : {"Content-Type", "Content-Length", "ETag", "Cache-Control"}) {
      EXPECT_EQ(head->get_header_value(name), get->get_header_value(name)) << path << ' ' << name;
    }
  }
  EXPECT_GT(json::parse(client.Get("/api/v1/health")->body).size(), 3u);
}

// Browsers send the cookies of all programs that ever ran on localhost.
TEST(ServerAccess, AcceptsManyUnrelatedCookies) {
  TestServer server(with_key());
  const RawResponse login =
      RawClient(server.port).exchange(get_request(server.frontend.make_login_path()));
  ASSERT_EQ(login.status, 200);
  const std::string& set = login.headers.at("set-cookie");
  std::string others;
  for (int i = 0; others.size() < 5000; ++i)
    others += "other-" + std::to_string(i) + "=" + std::string(64, 'c') + "; ";
  const std::string logged_in = "Cookie: " + others + set.substr(0, set.find(';')) + "\r\n";
  const std::string logged_out = "Cookie: " + others + "last=1\r\n";
  RawClient client(server.port);
  for (const char* path : {"/api/v1/sessions", "/api/v1/models", "/api/v1/health"}) {
    const RawResponse answer = client.exchange(get_request(path, logged_in));  // on one connection
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_GT(json::parse(answer.body).size(), 1u) << path;
  }
  const std::string request = get_request("/api/v1/sessions", logged_in);
  for (const std::size_t at : {20u, 2000u, 4999u}) {  // in two packets
    client.send(request.substr(0, at));
    wait_until_input_handled(server.port);
    client.send(request.substr(at));
    EXPECT_EQ(client.read_response().status, 200) << at;
  }
  EXPECT_EQ(RawClient(server.port).exchange(get_request("/api/v1/sessions", logged_out)).status,
            401);
  EXPECT_EQ(client.exchange(upgrade_request("/api/v1/live", logged_in)).status, 101);
}

TEST(ServerAccess, BrowserGetsLoginPage) {
  TestServer server(with_key());
  auto client = server.client();
  const httplib::Headers browser = {{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}};
  for (const char* path : {"/", "/api/v1/sessions", "/login?code=0123"}) {
    const auto page = client.Get(path, browser);
    ASSERT_TRUE(page) << path;
    EXPECT_EQ(page->status, 401);
    EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
    EXPECT_TRUE(page->body.contains("Log in to tensor-trace")) << page->body;
    EXPECT_TRUE(page->body.contains("SIGUSR1"));
    EXPECT_FALSE(page->body.contains("<script"));
    EXPECT_FALSE(page->body.contains(kKey));
  }
  const auto login = client.Get(server.frontend.make_login_path(), browser);
  ASSERT_TRUE(login);
  EXPECT_EQ(login->status, 200);
}

TEST(ServerAccess, RejectsUnsupportedBodyTypes) {
  TestServer server;
  auto client = server.client();
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded",
                           "application/octet-stream", "multipart/form-data; boundary=x"}) {
    const auto answer = client.Post("/api/v1/generate", R"({"prompt": "x"})", type);
    ASSERT_TRUE(answer) << type;
    EXPECT_EQ(answer->status, 415) << type;
    const json problem = json::parse(answer->body);
    EXPECT_EQ(problem["code"], "unsupported_media_type");
    EXPECT_TRUE(problem["detail"].get<std::string>().contains("application/json"));
  }
}

TEST(ServerAccess, SessionBodyLimitIsLargerThanPromptLimit) {
  TestServer server;
  const std::string body(17u << 20, ' ');
  const TestResponse prompt = server.post("/api/v1/generate", body);
  EXPECT_EQ(prompt.status, 413);
  EXPECT_EQ(prompt.body["code"], "body_too_large");
  const TestResponse session = server.post("/api/v1/sessions", body, "application/octet-stream");
  EXPECT_EQ(session.status, 422) << session.body;
}

TEST(ServerAccess, EveryFrontendRejectionIsAProblem) {
  for (int i = 0; i <= static_cast<int>(RejectionReason::TooManyConnections); ++i) {
    const Rejection refusal{.reason = static_cast<RejectionReason>(i), .why = "a <reason>"};
    const RejectionBody body = render_rejection(refusal);
    EXPECT_EQ(body.type, "application/problem+json");
    const json problem = json::parse(body.text);
    EXPECT_EQ(problem["status"], status_of(refusal.reason));
    EXPECT_EQ(problem["detail"], "a <reason>");
    EXPECT_NE(problem["code"], code_of(ErrorCode::Internal)) << i;
  }
}

}  // namespace
}  // namespace tt::test
