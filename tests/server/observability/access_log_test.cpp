// Every response has a request id that is also in its log line. The log contains no
// confidential data of clients.
#include "server/observability/access_log.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/observability/exposition.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/wait.h"

namespace tt {
namespace {

using namespace test;

// The lines of a JSON log; fails for a line that is not JSON. A line that is still being written
// is left out.
std::vector<json> lines_of(const Program& program) {
  std::vector<json> lines;
  const std::string text = program.stderr_text();
  std::istringstream log(text.substr(0, text.rfind('\n') + 1));
  for (std::string line; std::getline(log, line);) {
    lines.push_back(json::parse(line, nullptr, false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

// The access log line of a request; it is written shortly after the response.
json line_of(const Program& program, const std::string& request_id) {
  json found = json::object();
  EXPECT_TRUE(wait_until([&] {
    for (const json& line : lines_of(program)) {
      if (line.value("request_id", "") == request_id) found = line;
    }
    return !found.empty();
  })) << "no log line for "
      << request_id;
  return found;
}

TEST(AccessLog, RouteLabelsMatchTheContract) {
  const std::map<std::string, std::string> cases = {
      {"", "none"},
      {"/.*", "page"},
      {"/metrics", "/metrics"},
      {"/api/v1/sessions/:id", "/api/v1/sessions/{id}"},
      {"/api/v1/sessions/:id/steps/:step/ops", "/api/v1/sessions/{id}/steps/{step}/ops"},
  };
  for (const auto& [route, label] : cases) {
    RequestRecord answered;
    answered.route = route;
    EXPECT_EQ(route_label(answered), label);
  }
}

TEST(AccessLog, EveryResponseAndLogLineShareRequestId) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"--log-json", "--log-level", "debug"});
  const std::string host = "Host: 127.0.0.1\r\n";
  struct Case {
    std::string request;
    int status;
    std::string route;
  };
  const Case cases[] = {
      {"GET /api/v1/health HTTP/1.1\r\n" + host, 200, "/api/v1/health"},
      {"HEAD /api/v1/health HTTP/1.1\r\n" + host, 200, "/api/v1/health"},
      {"GET /api/v1/sessions/none HTTP/1.1\r\n" + host, 404, "/api/v1/sessions/{id}"},
      {"GET /api/nothing HTTP/1.1\r\n" + host, 404, "page"},
      {"DELETE /nothing HTTP/1.1\r\n" + host, 404, "none"},
      {"GET /api/v1/health HTTP/1.1\r\nHost: evil.example\r\n", 403, "none"},
      {"GET /api/v1/health HTTP/1.1\r\n", 400, "none"},
      {"nonsense\r\n", 400, "none"},
      {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\n" + host, 414, "none"},
      {"GET /x HTTP/1.1\r\n" + host + "X-Long: " + std::string(9000, 'x') + "\r\n", 431, "none"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.request.substr(0, 60));
    RawClient client(server.port());
    client.send(c.request + "\r\n");
    const RawResponse answer = client.read_response(c.request.starts_with("HEAD") ? "HEAD" : "GET");
    EXPECT_EQ(answer.status, c.status);
    ASSERT_TRUE(answer.headers.contains("x-request-id"));
    const json line = line_of(server.program, answer.headers.at("x-request-id"));
    EXPECT_EQ(line["status"], c.status);
    EXPECT_EQ(line["route"], c.route);
    EXPECT_EQ(line["peer"], "127.0.0.1");
    EXPECT_TRUE(line["ms"].is_number_integer());
    EXPECT_GT(line["bytes"], 0);
  }
}

TEST(AccessLog, ValidClientRequestIdIsKept) {
  const test::TempFolder folder;
  RunningServer server(folder.path());
  const auto id_for = [&](const std::string& headers) {
    RawClient client(server.port());
    const RawResponse answer = client.exchange(get_request("/api/v1/health", headers));
    EXPECT_EQ(answer.status, 200);
    return answer.headers.contains("x-request-id") ? answer.headers.at("x-request-id") : "";
  };
  for (const std::string& id :
       {std::string("a"), std::string("My-Request_1.2"), std::string(64, 'x')}) {
    EXPECT_EQ(id_for("X-Request-Id: " + id + "\r\n"), id);
  }
  std::set<std::string> made;
  for (const std::string& headers :
       {std::string(), std::string("X-Request-Id:\r\n"), std::string("X-Request-Id: a b\r\n"),
        std::string("X-Request-Id: a\"b\r\n"), std::string("X-Request-Id: \xC3\xA4\r\n"),
        "X-Request-Id: " + std::string(65, 'x') + "\r\n",
        std::string("X-Request-Id: a\r\nX-Request-Id: b\r\n")}) {
    SCOPED_TRACE(headers);
    const std::string id = id_for(headers);
    EXPECT_EQ(id.size(), 16u) << id;
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
    EXPECT_TRUE(made.insert(id).second) << "ids must be unique";
  }
}

TEST(AccessLog, LogContainsNoPromptsResponsesOrKeys) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"--log-json", "--log-level", "trace", "-t", "1", "-tb", "1"},
                       {"TT_API_KEY=KEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEY"});
  httplib::Client client = http_client(server.url);
  client.set_bearer_token_auth("KEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEY");
  EXPECT_TRUE(wait_until([&] {
    const auto health = client.Get("/api/v1/health");
    return health && json::parse(health->body)["model_state"] != "loading";
  }));
  const auto post = [&](const std::string& body) {
    const auto answer = client.Post("/api/v1/generate", body, "application/json");
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(post(R"({"prompt": "SECRETPROMPT", "max_tokens": 4})"), 202);
  EXPECT_EQ(post(R"({"prompt": "SECRETPROMPT)"), 400);
  EXPECT_EQ(post(R"({"SECRETPROMPT": 1})"), 400);
  client.Get("/login?code=SECRETCODE");
  client.Get("/api/v1/sessions?q=SECRETWORDS");
  client.set_bearer_token_auth("SECRETWRONGKEY");
  const auto rejected = client.Get("/api/v1/sessions");
  ASSERT_TRUE(static_cast<bool>(rejected));
  EXPECT_EQ(rejected->status, 401);
  line_of(server.program, rejected->get_header_value("X-Request-Id"));
  const std::string log = server.program.stderr_text();
  EXPECT_GT(lines_of(server.program).size(), 20u) << "the trace level logs everything";
  EXPECT_EQ(log.find("SECRET"), std::string::npos) << log.substr(log.find("SECRET"), 200);
  EXPECT_EQ(log.find("KEYKEY"), std::string::npos);
}

TEST(AccessLog, RequestsAreCountedByRoute) {
  const test::TempFolder folder;
  RunningServer server(folder.path());
  httplib::Client client = http_client(server.url);
  for (int i = 0; i < 20; ++i) {
    client.Get("/api/v1/sessions/no-" + std::to_string(i));
    client.Get("/api/no-" + std::to_string(i));
  }
  const auto answer = client.Get("/metrics");
  ASSERT_TRUE(static_cast<bool>(answer));
  const Exposition all = parse_exposition(answer->body);
  const auto& samples = all.at("tt_http_requests_total").samples;
  const auto count = [&](const char* sample) {
    const auto found = samples.find(sample);
    return found == samples.end() ? 0 : found->second;
  };
  EXPECT_EQ(count(R"(tt_http_requests_total{method="GET",route="/api/v1/sessions/{id}",)"
                  R"(status="404"})"),
            20);
  EXPECT_EQ(count(R"(tt_http_requests_total{method="GET",route="page",status="404"})"), 20);
  EXPECT_LT(samples.size(), 6u);
}

}  // namespace
}  // namespace tt
