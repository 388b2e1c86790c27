// Heat maps and totals of a session over HTTP.
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstring>

#include "tests/server/support/http_client.h"
#include "tests/server/support/test_server.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

class HeatServer : public TestServer {
 public:
  HeatServer() {
    const SmallSession session({small_step(0), small_step(1), small_step(2)});
    std::filesystem::copy_file(session.path, folder.path() / "small.ttrace");
  }
  TestResponse ask(const std::string& target) { return get("/api/v1/sessions/small/" + target); }
};

TEST(HeatRoutes, HeatMapDescribesItsAxes) {
  HeatServer server;
  const json map = server.ask("heatmap?value=time&width=10").body;
  EXPECT_EQ(map["x"]["axis"], "token") << map;
  EXPECT_EQ(map["x"]["pixels"], 6);
  EXPECT_EQ(map["y"]["rows"], json({"0", "1", "none"}));
  EXPECT_EQ(map["cells"][0], json({25, 25, 25, 25, 25, 25}));
  EXPECT_EQ(map["total"], 450);
  EXPECT_EQ(map["largest"], 30);
  const json one = server.ask("heatmap?x=op_kind&y=component&phase=prompt&layers=0,none").body;
  EXPECT_EQ(one["x"]["rows"], json({"GET_ROWS", "RMS_NORM+MUL", "MUL_MAT"}));
  EXPECT_EQ(server.ask("heatmap?y=token").status, 400);
  for (const char* same : {"0,outside", "0-0,none", "outside,0,0"}) {
    EXPECT_EQ(server.ask(std::string("heatmap?x=op_kind&y=component&phase=prompt&layers=") + same)
                  .body["cells"],
              one["cells"])
        << same;
  }
  EXPECT_EQ(server.ask("heatmap?layers=all").body["cells"], server.ask("heatmap").body["cells"]);
  EXPECT_EQ(server.ask("heatmap?layers=first").status, 400);
  for (const char* missing :
       {"heatmap?layers=0,1,99", "hot?layers=99", "timeline?layers=0-99", "sequentiality?layers=99",
        "accesses?layer=99", "steps/0/accesses?layer=99"}) {
    const auto answer = server.ask(missing);
    EXPECT_EQ(answer.status, 404) << missing;
    EXPECT_TRUE(answer.body["detail"].get<std::string>().contains("no layer 99")) << answer.body;
  }
  EXPECT_EQ(server.ask("hot?hot_percent=2.5&cold_percent=0.1").status, 200);
  for (const char* percent : {"-1", "100.1", "nan", "inf", "1e1", "", "2.5x"})
    EXPECT_EQ(server.ask(std::string("hot?hot_percent=") + percent).status, 400) << percent;
  for (const char* turned : {"heatmap?from_token=20&to_token=10", "hot?from_step=2&to_step=1",
                             "breakdown?from_ns=9&to_ns=8", "heatmap?x_from=5&x_to=4",
                             "timeline?y_from=5&y_to=4", "memory-map?from=5&to=4"}) {
    const auto answer = server.ask(turned);
    EXPECT_EQ(answer.status, 400) << turned;
    EXPECT_TRUE(answer.body["detail"].get<std::string>().contains("the end is before the start"))
        << answer.body;
  }
  for (const char* none : {"heatmap?width=0", "heatmap?height=0", "timeline?width=0",
                           "memory-map?width=0", "heatmap?width=5000"}) {
    const auto answer = server.ask(none);
    EXPECT_EQ(answer.status, 400) << none;
    EXPECT_TRUE(answer.body["detail"].get<std::string>().contains("from")) << answer.body;
  }
  const auto overlap = server.ask("hot?hot_percent=60&cold_percent=60");
  EXPECT_EQ(overlap.status, 400);
  EXPECT_TRUE(overlap.body["detail"].get<std::string>().contains("overlap")) << overlap.body;
  EXPECT_EQ(server.ask("hot?hot_percent=60&cold_percent=40").status, 200);
  EXPECT_EQ(server.ask("heatmap?width=4096&height=2048").status, 200);
  EXPECT_EQ(server.ask("heatmap?width=4096&height=2049").status, 400);
  EXPECT_EQ(
      get_when_computed(server.client(),
                        "/api/v1/sessions/small/heatmap?width=4096&height=4096&format=columns")
          ->status,
      200);
  EXPECT_EQ(server.get("/api/v1/sessions/none/heatmap").status, 404);
}

TEST(HeatRoutes, AllViewsHaveTheSameTotal) {
  HeatServer server;
  const double total = server.ask("breakdown?by=tensor").body["sums"]["all"]["bytes_read"];
  EXPECT_GT(total, 0);
  for (const char* target :
       {"heatmap?x=tensor&y=layer&value=bytes_read", "heatmap?x=step&y=op&value=bytes_read",
        "memory-map?value=bytes_read", "memory-map?memory=buffer&value=bytes_read",
        "timeline?value=bytes_read&y=source"}) {
    // Equal except for the rounding of doubles.
    const double shown = server.ask(target).body["total"];
    EXPECT_NEAR(shown, total, 1e-9 * total) << target;
  }
  const json map = server.ask("memory-map?value=bytes&width=4&from=3000&to=3256").body;
  EXPECT_EQ(map["cells"], json::array({{192, 192, 192, 192}})) << "attn_q, in three steps";
}

TEST(HeatRoutes, RowFiguresAreOfSingleStepsOnRequest) {
  HeatServer server;
  EXPECT_FALSE(server.ask("heatmap?x=step").body.contains("row_figures"));
  EXPECT_FALSE(server.ask("heatmap?x=step&row_figures=false").body.contains("row_figures"));
  // Three equal steps of two tokens: a prompt and two that generate. The layers take 50, 40 and 60
  // ns.
  const std::string of = "heatmap?y=layer&width=1&row_figures=true&value=";
  const json times = server.ask(of + "time&x=step").body;
  const json& figures = times["row_figures"];
  EXPECT_EQ(times["cells"], json({{150}, {120}, {180}})) << times;
  EXPECT_EQ(figures["phase"], "generate");
  EXPECT_EQ(figures["units"], 2);
  EXPECT_EQ(figures["left_out"], 0);
  EXPECT_EQ(figures["times"]["steps"], 2);
  for (const char* figure : {"mean", "p5", "median", "p95"})
    EXPECT_EQ(figures[figure], json({50, 40, 60})) << figure;
  // A token has half of its step. Each step of a prompt counts once.
  const json tokens = server.ask(of + "time&x=token").body["row_figures"];
  EXPECT_EQ(tokens["units"], 4);
  EXPECT_EQ(tokens["median"], json({25, 20, 30}));
  const json prompt = server.ask(of + "bytes&x=token&phase=prompt").body["row_figures"];
  EXPECT_EQ(prompt["phase"], "prompt");
  EXPECT_EQ(prompt["units"], 1);
  const json bytes = server.ask(of + "bytes&x=step&x_from=1&x_to=2").body;
  EXPECT_EQ(bytes["row_figures"]["units"], 1);
  EXPECT_TRUE(bytes["row_figures"]["times"].is_null());
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(bytes["row_figures"]["mean"][row], bytes["cells"][row][0]);
  for (const char* wrong : {"heatmap?x=layer&row_figures=true", "heatmap?x=time&row_figures=true",
                            "heatmap?x=step&row_figures=2"})
    EXPECT_EQ(server.ask(wrong).status, 400) << wrong;
}

TEST(HeatRoutes, ColumnFormatMatchesJson) {
  HeatServer server;
  const std::string target = "heatmap?x=step&y=component&value=bytes&row_figures=true";
  json plain = server.ask(target).body;
  const auto answer = server.client().Get("/api/v1/sessions/small/" + target + "&format=columns");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "application/vnd.tensor-trace.columns");
  const std::string& body = answer->body;
  std::uint32_t magic = 0, width = 0, height = 0;
  std::uint16_t kind = 0;
  double largest = 0, total = 0;
  std::memcpy(&magic, body.data(), 4);
  std::memcpy(&kind, body.data() + 4, 2);
  std::memcpy(&width, body.data() + 8, 4);
  std::memcpy(&height, body.data() + 12, 4);
  std::memcpy(&largest, body.data() + 16, 8);
  std::memcpy(&total, body.data() + 24, 8);
  EXPECT_EQ(magic, 0x31465454U);
  EXPECT_EQ(kind, 3);
  EXPECT_EQ(largest, plain["largest"]);
  EXPECT_EQ(total, plain["total"]);
  ASSERT_EQ(height, plain["cells"].size());
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      float cell = 0;
      std::memcpy(&cell, body.data() + 32 + 4 * (y * width + x), 4);
      EXPECT_EQ(cell, plain["cells"][y][x].get<float>());
    }
  }
  plain.erase("cells");
  EXPECT_EQ(json::parse(body.substr(32 + (4 * width * height + 7) / 8 * 8)), plain);
}

TEST(HeatRoutes, BreakdownHotAndSequentiality) {
  HeatServer server;
  const json by_op = server.ask("breakdown?by=op_kind&sort=-time&limit=1").body;
  EXPECT_EQ(by_op["total"], 3);
  ASSERT_EQ(by_op["rows"].size(), 1U);
  EXPECT_EQ(by_op["rows"][0]["name"], "MUL_MAT");
  EXPECT_EQ(by_op["rows"][0]["all"]["time_ns"], 360);
  EXPECT_EQ(by_op["rows"][0]["prompt"]["executions"], 3);
  EXPECT_EQ(by_op["rows"][0]["generate"]["executions"], 6);
  EXPECT_EQ(server.ask("breakdown?by=file").status, 400);

  const json by_kernel = server.ask("breakdown?by=kernel").body;
  ASSERT_EQ(by_kernel["total"], 1) << by_kernel;
  EXPECT_EQ(by_kernel["rows"][0]["name"], "plain");
  EXPECT_EQ(by_kernel["rows"][0]["all"]["time_ns"], 450);
  const json plain = server.ask("breakdown?by=op_kind&kernel=plain").body;
  EXPECT_EQ(plain["total"], 3) << plain;
  EXPECT_EQ(plain["sums"]["all"]["time_ns"], 450);
  EXPECT_EQ(server.ask("breakdown?kernel=repacked").body["total"], 0);
  EXPECT_EQ(server.ask("breakdown?kernel=fast").status, 400);

  const json hot = server.ask("hot?value=time&hot_percent=20&cold_percent=0").body;
  EXPECT_EQ(hot["rows"][0]["name"], "output.weight");
  EXPECT_EQ(hot["rows"][0]["heat"], "hot");
  EXPECT_EQ(hot["rows"][0]["size_bytes"], 512);
  EXPECT_EQ(hot["classes"]["cold"]["rows"], 0);

  const json order = server.ask("sequentiality?limit=2").body;
  EXPECT_EQ(order["sums"]["reads"], 18) << order;
  EXPECT_EQ(order["sums"]["sequential"], 15) << "each step starts again at the embedding";
  EXPECT_EQ(server.ask("sequentiality?gap=0").body["sums"]["sequential"], 0);
  EXPECT_EQ(order["steps"].size(), 2U);
  EXPECT_EQ(order["total"], 3);
}

TEST(HeatRoutes, ComparesTokensStepsAndLayers) {
  HeatServer server;
  const json steps = server.ask("comparison?left_step=0&right_step=1&value=bytes").body;
  EXPECT_EQ(steps["of"], "step");
  EXPECT_EQ(steps["left"], 0);
  EXPECT_EQ(steps["right"], 1);
  EXPECT_EQ(steps["total"], steps["rows"].size());
  EXPECT_EQ(steps["sums"]["left"]["time_ns"], 150);
  EXPECT_EQ(steps["sums"]["difference"]["time_ns"], 0) << "all steps are alike";
  EXPECT_EQ(server.ask("comparison?left_step=0&right_step=1&limit=1").body["rows"].size(), 1U);
  const json tokens = server.ask("comparison?left_token=0&right_token=5&layers=1").body;
  EXPECT_EQ(tokens["sums"]["right"]["time_ns"], 20);
  const json layers = server.ask("comparison?left_layer=0&right_layer=1&phase=prompt").body;
  EXPECT_EQ(layers["sums"]["left"]["time_ns"], 50);
  EXPECT_EQ(layers["sums"]["right"]["time_ns"], 40);
  for (const char* invalid :
       {"comparison", "comparison?left_token=1", "comparison?left_token=1&right_step=1",
        "comparison?left_token=0&right_token=1&left_step=0&right_step=1",
        "comparison?left_layer=0&right_layer=1&layers=0", "comparison?left_step=x&right_step=1"})
    EXPECT_EQ(server.ask(invalid).status, 400) << invalid;
  for (const char* missing :
       {"comparison?left_token=0&right_token=6", "comparison?left_step=3&right_step=0",
        "comparison?left_layer=0&right_layer=2"})
    EXPECT_EQ(server.ask(missing).status, 404) << missing;
}

TEST(HeatRoutes, MatchingEtagReturns304) {
  HeatServer server;
  auto client = server.client();
  const auto first = get_when_computed(server.client(), "/api/v1/sessions/small/heatmap");
  ASSERT_TRUE(first);
  const auto again = client.Get("/api/v1/sessions/small/heatmap",
                                {{"If-None-Match", first->get_header_value("ETag")}});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, 304);
}

}  // namespace
}  // namespace tt::test
