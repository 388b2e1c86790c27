// Graphs, weight sizes, heads and experts of a session over HTTP. The computed values are
// tested in tests/analysis/ and tests/tracer/.
#include <gtest/gtest.h>
#include <httplib.h>

#include "tests/server/support/test_server.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

// A server with one ended session, "small".
class GraphServer : public TestServer {
 public:
  GraphServer() {
    SessionInfo info = SmallSession::small_info();
    info.n_heads = 2;
    info.n_heads_kv = 1;
    const SmallSession session({small_step(0), small_step(1)}, info);
    std::filesystem::copy_file(session.path, folder.path() / "small.ttrace");
  }
  TestResponse ask(const std::string& target) { return get("/api/v1/sessions/small/" + target); }
};

TEST(GraphRoutes, ReturnWholeGraphOrSelectedLayers) {
  GraphServer server;
  const json whole = server.ask("steps/1/graph").body;
  EXPECT_EQ(whole["step"], 1);
  EXPECT_EQ(whole["layers"], 2);
  EXPECT_EQ(whole["nodes"].size(), 12U) << whole;
  json of_template = server.ask("templates/1/graph?layers=0,1,outside").body;
  EXPECT_TRUE(of_template["step"].is_null());
  EXPECT_EQ(of_template["nodes"], whole["nodes"]);
  EXPECT_EQ(of_template["edges"], whole["edges"]);
  // The route of a layer returns the same nodes.
  const json layer = server.ask("steps/1/layers/1").body;
  EXPECT_EQ(layer["layer"], 1);
  EXPECT_EQ(server.ask("steps/1/graph?layers=1").body["nodes"], layer["nodes"]);

  const json groups = server.ask("steps/1/graph?collapse=true").body;
  std::size_t tensors = 0;
  for (const json& group : groups["groups"]) tensors += group["tensors"].get<std::size_t>();
  EXPECT_EQ(tensors, 12U);

  for (const char* target :
       {"steps/1/graph?format=dot", "templates/1/graph?format=dot&collapse=true"}) {
    const auto dot = server.client().Get(std::string("/api/v1/sessions/small/") + target);
    ASSERT_TRUE(dot && dot->status == 200);
    EXPECT_EQ(dot->get_header_value("Content-Type"), "text/vnd.graphviz; charset=utf-8");
    EXPECT_TRUE(dot->body.starts_with("digraph ")) << dot->body;
    EXPECT_TRUE(dot->has_header("ETag"));
  }
}

TEST(GraphRoutes, SizesHeadsAndKvCache) {
  GraphServer server;
  const json sizes = server.ask("compression").body;
  EXPECT_EQ(sizes["total"]["bytes"], 1568);
  EXPECT_EQ(sizes["total"]["bits_per_weight"], 32.0);
  EXPECT_EQ(sizes["types"][0]["ratio_f16"], 0.5);
  EXPECT_EQ(sizes["weights"].size(), 5U);
  const json heads = server.ask("heads").body;
  ASSERT_EQ(heads["weights"].size(), 1U);
  EXPECT_EQ(heads["weights"][0]["head_bytes"], 128);
  EXPECT_EQ(heads["weights"][0]["heads"][1]["file_offset"], 3128);
  EXPECT_EQ(heads["weights"][0]["heads"][1]["reads"], 2);
  const json kv = server.ask("kv?from=1").body;
  EXPECT_EQ(kv["total"], 2);
  ASSERT_EQ(kv["steps"].size(), 1U);
  EXPECT_TRUE(kv["steps"][0]["layers"].empty());
}

TEST(GraphRoutes, AreEmptyForModelWithoutExperts) {
  GraphServer server;
  const json experts = server.ask("experts").body;
  EXPECT_TRUE(experts["routers"].empty() && experts["experts_for_percent"].empty()) << experts;
  EXPECT_TRUE(experts["missing"].get<std::string>().contains("no expert choices")) << experts;
  const json tokens = server.ask("experts/tokens?limit=1").body;
  EXPECT_EQ(tokens["total"], 2);
  EXPECT_TRUE(tokens["tokens"][0]["experts"].empty());
  const json pinning = server.ask("experts/pinning").body;
  EXPECT_EQ(pinning["expert_bytes_read"], 0);
  EXPECT_TRUE(pinning["gain"].is_null());
  EXPECT_EQ(server.ask("experts/pinning?capacity=100").body["curve"].size(), 1U);
  const json caches = server.ask("experts/caches?slots=2").body;
  EXPECT_EQ(caches["requests"], 0);
  EXPECT_TRUE(caches["rows"].empty());
}

TEST(GraphRoutes, ErrorsListAllowedValues) {
  GraphServer server;
  struct Case {
    const char* target;
    int status;
    const char* says;
  };
  const Case cases[] = {
      {"steps/0/graph?layers=", 400, "0,3-5"},
      {"steps/0/graph?layers=x", 400, "outside"},
      {"steps/0/graph?layers=2", 404, "no layer 2"},
      {"steps/0/graph?collapse=yes", 400, "true, false"},
      {"steps/0/graph?format=svg", 400, "json, dot"},
      {"steps/9/graph", 404, "step 9"},
      {"templates/9/graph", 404, "template 9"},
      {"templates/0/graph", 404, "from 1"},
      {"compression?layer=1", 400, "layer"},
      {"heads?step=1", 400, "step"},
      {"kv?limit=10001", 400, "10000"},
      {"experts?phase=x", 400, "generate"},
      {"experts/layers/0", 404, "no experts"},
      {"experts/layers/x", 404, "from 0"},
      {"experts/layers/0?pairs=10001", 400, "10000"},
      {"experts/layers/0?tokens=101", 400, "100"},
      {"experts/tokens?layer=x", 400, "none"},
      {"experts/pinning?capacity=much", 400, "whole number"},
      {"experts/caches?slots=0", 400, "from 1 to"},
      {"experts/caches?slots=65537", 400, "slots"},
  };
  for (const Case& c : cases) {
    const TestResponse answer = server.ask(c.target);
    EXPECT_EQ(answer.status, c.status) << c.target;
    EXPECT_TRUE(answer.body["detail"].get<std::string>().contains(c.says))
        << c.target << ": " << answer.body["detail"];
  }
}

}  // namespace
}  // namespace tt::test
