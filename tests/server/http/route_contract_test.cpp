#include "server/http/route_contract.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <thread>

#include "api/openapi/openapi.h"
#include "tests/server/support/test_server.h"

namespace tt {
namespace {

constexpr std::string_view kContract = R"({
  "components": {"parameters": {"limit": {"name": "limit", "in": "query"},
                                "id": {"name": "id", "in": "path"}}},
  "paths": {
    "/a": {"get": {"parameters": [{"name": "q", "in": "query"}]}, "post": {}},
    "/a/{id}": {"parameters": [{"$ref": "#/components/parameters/id"},
                               {"$ref": "#/components/parameters/limit"}],
                "get": {"parameters": [{"name": "sort", "in": "query"}]}, "delete": {}},
    "/a/{id}/b": {"post": {}}}})";

TEST(RouteContract, ReturnsMethodsOfPath) {
  const RouteContract contract(kContract);
  struct Case {
    const char* path;
    const char* methods;
  };
  const Case cases[] = {
      {"/a", "GET, HEAD, POST"},
      {"/a/x", "DELETE, GET, HEAD"},
      {"/a/x/b", "POST"},
      {"/a/", ""},
      {"/a/x/", ""},
      {"/a/x/c", ""},
      {"/", ""},
      {"", ""},
      {"/a//b", ""},
      {"/A", ""},
  };
  for (const auto& [path, methods] : cases) EXPECT_EQ(contract.methods_of(path), methods) << path;
}

TEST(RouteContract, RejectsUnknownParameters) {
  const RouteContract contract(kContract);
  struct Case {
    const char* method;
    const char* target;
    const char* why;  // null: accepted
  };
  const Case cases[] = {
      {"GET", "/a?q=1", nullptr},
      {"HEAD", "/a?q=1", nullptr},
      {"GET", "/a?q=1&q=2", "\"q\" must be given only once."},
      {"GET", "/a?Q=1", "Unknown parameter \"Q\". Did you mean q? The parameters are q."},
      {"POST", "/a?q=1", "Unknown parameter \"q\". This route has no parameters."},
      {"GET", "/a/x?limit=1&sort=y", nullptr},
      {"GET", "/a/x?limit=1&id=y", "Unknown parameter \"id\". The parameters are limit, sort."},
      {"DELETE", "/a/x?limit=1", nullptr},
      {"DELETE", "/a/x?sort=1", "Unknown parameter \"sort\". The parameters are limit."},
      {"PATCH", "/a/x?any=1", nullptr},
      {"GET", "/elsewhere?any=1", nullptr},
  };
  for (const auto& [method, target, why] : cases) {
    SCOPED_TRACE(std::string(method) + " " + target);
    httplib::Request request;
    request.method = method;
    const std::string_view text(target);
    const auto query = text.find('?');
    request.path = text.substr(0, query);
    httplib::detail::parse_query_text(std::string(text.substr(query + 1)), request.params);
    const auto rejected = contract.check_query(request);
    EXPECT_EQ(rejected.has_value(), why != nullptr);
    EXPECT_EQ(rejected.value_or(Problem{}).detail, why == nullptr ? "" : why);
  }
}

TEST(RouteContract, NamesThePathThatWasMeant) {
  const RouteContract contract(openapi_json());
  const std::pair<const char*, const char*> cases[] = {
      {"/health", "/api/v1/health"},
      {"/v1/chat/completions", "POST /api/v1/generate"},
      {"/completion", "POST /api/v1/generate"},
      {"/v1/messages", "POST /api/v1/generate"},
      {"/api/chat", "POST /api/v1/generate"},
      {"/api/tags", "GET /api/v1/models"},
      {"/props", "GET /api/v1/server"},
      {"/api/v1/session", "/api/v1/sessions"},
      {"/api/v1/sessions/", "/api/v1/sessions"},
      {"/api/v1/sessions/s1/step", "/api/v1/sessions/s1/steps"},
      {"/api/v1/sessions/s1/steps/3/access", "/api/v1/sessions/s1/steps/3/accesses"},
      {"/api/v1/nothing/like/it", ""},
      {"/frobnicate", ""},
      {"//", ""},
  };
  for (const auto& [path, meant] : cases) EXPECT_EQ(contract.similar_path(path), meant) << path;
}

TEST(RouteContract, ParsesShippedContract) {
  const RouteContract contract(openapi_json());
  EXPECT_EQ(contract.methods_of("/api/v1/health"), "GET, HEAD");
  EXPECT_EQ(contract.methods_of("/api/v1/sessions/x"), "DELETE, GET, HEAD, PATCH");
}

TEST(RouteContract, UndocumentedRoutesCannotBeCalled) {
  httplib::Server http;
  const auto handler = [](const httplib::Request&, httplib::Response& response) {
    response.set_content("called", "text/plain");
  };
  http.Get("/api/v1/health", handler);
  http.Get("/api/v1/undocumented", handler);
  http.Get("/undocumented/:id", handler);
  const StaticFiles files("/nonexistent");
  const RouteContract contract(openapi_json());
  add_page_routes(http, files, contract);
  httplib::Client client("127.0.0.1", http.bind_to_any_port("127.0.0.1"));
  const std::jthread listener([&http] { http.listen_after_bind(); });
  http.wait_until_ready();
  EXPECT_EQ(client.Get("/api/v1/health")->body, "called");
  for (const char* path : {"/api/v1/undocumented", "/undocumented/1"}) {
    const auto response = client.Get(path);
    EXPECT_EQ(response->status, 404) << path;
    EXPECT_TRUE(response->body.contains("/api/docs lists the routes")) << response->body;
  }
  http.stop();
}

TEST(RouteContract, IsEnforcedByServer) {
  test::TestServerOptions options;
  options.model = "/nonexistent/model.gguf";
  test::TestServer server(options);

  const auto unknown = server.get("/api/v1/health?verbose=1");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.body["code"], "bad_request");

  for (const char* path : {"/api/v1/health", "/api/v1/sessions/x/tokens"}) {
    const auto rejected = server.client().Post(path, "{}", "application/json");
    ASSERT_TRUE(rejected);
    EXPECT_EQ(rejected->status, 405) << path;
    EXPECT_EQ(rejected->get_header_value("Allow"), "GET, HEAD") << path;
  }
  const auto wrong_get = server.client().Get("/api/v1/sessions/x/restore");
  ASSERT_TRUE(wrong_get);
  EXPECT_EQ(wrong_get->status, 405);
  EXPECT_EQ(wrong_get->get_header_value("Allow"), "POST");
  EXPECT_EQ(server.get("/api/v1/nothing").status, 404);
}

}  // namespace
}  // namespace tt
