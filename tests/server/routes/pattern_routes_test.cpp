// Access patterns and cache savings over HTTP. The computed values are tested in
// tests/analysis/.
#include <gtest/gtest.h>
#include <httplib.h>

#include "tests/server/support/http_client.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

// A server with one finished session, "small": one prompt step and three generation steps.
class PatternServer : public TestServer {
 public:
  PatternServer() {
    const SmallSession session({small_step(0), small_step(1), small_step(2), small_step(3)});
    fs::copy_file(session.path, folder.path() / "small.ttrace");
  }
  TestResponse ask(const std::string& target) { return get("/api/v1/sessions/small/" + target); }
};

TEST(PatternRoutes, ReuseForBothGrainsAndAnySizes) {
  PatternServer server;
  // Every step reads the five weights, 1568 bytes, in the same order.
  const json tensors = server.ask("reuse?grain=tensor&sizes=1567,1568").body;
  EXPECT_EQ(tensors["reads"], 4 * 5);
  EXPECT_EQ(tensors["distinct_bytes"], 1568);
  EXPECT_EQ(tensors["bytes_read"], 4 * 1568);
  EXPECT_EQ(tensors["first"], (json{{"reads", 5}, {"bytes", 1568}}));
  ASSERT_EQ(tensors["curve"].size(), 2U);
  EXPECT_EQ(tensors["curve"][0]["lru"]["bytes_saved"], 0);
  EXPECT_EQ(tensors["curve"][0]["pin"]["bytes_saved"], 3 * 1567);
  for (const char* policy : {"lru", "belady", "pin"})
    EXPECT_EQ(tensors["curve"][1][policy], (json{{"reads_saved", 15}, {"bytes_saved", 3 * 1568}}));
  // Two embedding rows of 32 bytes are read; ten sizes by default.
  const json parts = server.ask("reuse").body;
  EXPECT_EQ(parts["grain"], "part");
  EXPECT_EQ(parts["distinct_bytes"], 1568 - 512 + 64);
  ASSERT_EQ(parts["curve"].size(), 10U);
  EXPECT_EQ(parts["curve"][9]["capacity_bytes"], parts["distinct_bytes"]);
  EXPECT_EQ(server.ask("reuse?sizes=").body, parts);
}

TEST(PatternRoutes, PatternMatchesCommandLineOutput) {
  PatternServer server;
  const json pattern = server.ask("pattern").body;
  EXPECT_EQ(pattern["version"], 2);
  EXPECT_EQ(pattern["session"], "small");
  ASSERT_EQ(pattern["per_token_pattern"].size(), 5U);
  EXPECT_EQ(pattern["per_token_pattern"][2], (json{{"tensor_name", "blk.0.attn_q.weight"},
                                                   {"kind", "fixed"},
                                                   {"op", 2},
                                                   {"model_file", 0},
                                                   {"file_offset", 3000},
                                                   {"size_bytes", 256},
                                                   {"parts", 1},
                                                   {"part_bytes", 256},
                                                   {"file_bytes", 256},
                                                   {"layer_id", 0},
                                                   {"component", "attention"}}));
  EXPECT_EQ(pattern["prediction"]["accuracy"], 1.0);
  EXPECT_EQ(pattern["determinism"], server.ask("determinism").body);
  EXPECT_EQ(pattern["determinism"]["pairs"], 2);
  EXPECT_EQ(pattern["determinism"]["identical"], 2);
}

TEST(PatternRoutes, FinishedSessionReturns304) {
  PatternServer server;
  for (const char* target : {"reuse", "pattern", "determinism"}) {
    const std::string path = std::string("/api/v1/sessions/small/") + target;
    auto client = server.client();
    const auto first = get_when_computed(server.client(), path);
    ASSERT_TRUE(first && first->status == 200) << target;
    const std::string tag = first->get_header_value("ETag");
    EXPECT_FALSE(tag.empty()) << target;
    const auto again = client.Get(path, {{"If-None-Match", tag}});
    EXPECT_TRUE(again && again->status == 304) << target;
    EXPECT_EQ(server.get("/api/v1/sessions/none/" + std::string(target)).status, 404);
  }
}

TEST(PatternRoutes, ErrorsListAllowedValues) {
  PatternServer server;
  std::string many = "1";
  for (int i = 0; i < 100; ++i) many += ",1";
  for (const std::string& sizes : {std::string("1,"), std::string("1,x"), std::string("-1"),
                                   std::string("9007199254740992"), many}) {
    const TestResponse answer = server.ask("reuse?sizes=" + sizes);
    EXPECT_EQ(answer.status, 400) << sizes;
    EXPECT_TRUE(answer.body["detail"].get<std::string>().contains("comma-separated")) << sizes;
  }
  EXPECT_EQ(server.ask("reuse?grain=layer").status, 400);
  EXPECT_EQ(server.ask("pattern?step=1").status, 400);
}

}  // namespace
}  // namespace tt::test
