// Runs docs/live-examples against the real server: their output equals the REST data.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/server/support/test_server.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

// The command, and whether the server compresses messages.
class LiveExamples : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(LiveExamples, PrintTextAndOpCount) {
  ensure_backends_loaded();
  const auto& [program, deflate] = GetParam();
  TestServerOptions options;
  options.frontend.websocket_deflate = deflate;
  TestServer server(options);
  ASSERT_TRUE(server.wait_until_loaded());
  // More than the window: a client that does not acknowledge would stall.
  const std::string id = server.generate(
      {{"prompt", "Once"}, {"max_tokens", 300}, {"ignore_eos", true}, {"temperature", 0}});
  const std::string command =
      program + " ws://127.0.0.1:" + std::to_string(server.port) + "/api/v1/live " + id;
  const std::string running = command_output(command);
  const json ended = server.wait_for_end(id);
  std::uint64_t ops = 0;
  const json steps = server.get("/api/v1/sessions/" + id + "/steps?limit=10000").body["steps"];
  for (const json& step : steps) ops += step["ops_timed"].get<std::uint64_t>();
  EXPECT_GT(ops * 20, 512u << 10);
  const std::string expected =
      ended["text"].get<std::string>() + "\ndone: " + std::to_string(ops) + " ops\n";
  EXPECT_EQ(running, expected);
  EXPECT_EQ(command_output(command), expected);  // again, from the file
}

INSTANTIATE_TEST_SUITE_P(
    Languages, LiveExamples,
    ::testing::Combine(::testing::Values("python3 " + source_path("docs/live-examples/live.py"),
                                         "node " + source_path("docs/live-examples/live.mjs")),
                       ::testing::Bool()),
    [](const auto& param) {
      return std::string(param.index < 2 ? "Python" : "JavaScript") +
             (std::get<1>(param.param) ? "Deflated" : "Plain");
    });

}  // namespace
}  // namespace tt::test
