// Runs docs/live-examples against the real server: their output equals the REST data.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/server/support/test_server.h"
#include "tests/support/places.h"
#include "tests/support/said_by.h"

namespace tt::test {
namespace {

// The command, and whether the server compresses messages.
class LiveExamples : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(LiveExamples, PrintTextAndOpCount) {
  need_backends();
  const auto& [program, deflate] = GetParam();
  TestServerOptions options;
  options.door.websocket_deflate = deflate;
  TestServer server(options);
  ASSERT_TRUE(server.wait_until_loaded());
  // More than the window: a client that does not acknowledge would stall.
  const std::string id = server.generate(
      {{"prompt", "Once"}, {"max_tokens", 300}, {"ignore_eos", true}, {"temperature", 0}});
  const std::string command =
      program + " ws://127.0.0.1:" + std::to_string(server.port) + "/api/v1/live " + id;
  const std::string running = said_by(command);
  const json ended = server.when_ended(id);
  std::uint64_t ops = 0;
  const json steps = server.get("/api/v1/sessions/" + id + "/steps?limit=10000").body["steps"];
  for (const json& step : steps) ops += step["ops"].get<std::uint64_t>();
  EXPECT_GT(ops * 20, 512u << 10);
  const std::string expected =
      ended["text"].get<std::string>() + "\ndone: " + std::to_string(ops) + " ops\n";
  EXPECT_EQ(running, expected);
  EXPECT_EQ(said_by(command), expected);  // again, from the file
}

INSTANTIATE_TEST_SUITE_P(
    Languages, LiveExamples,
    ::testing::Combine(::testing::Values("python3 " + in_tree("docs/live-examples/live.py"),
                                         "node " + in_tree("docs/live-examples/live.mjs")),
                       ::testing::Bool()),
    [](const auto& param) {
      return std::string(param.index < 2 ? "Python" : "JavaScript") +
             (std::get<1>(param.param) ? "Deflated" : "Plain");
    });

}  // namespace
}  // namespace tt::test
