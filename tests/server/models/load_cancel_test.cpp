// A load is cancelled at any moment: while the child checks the model, while the weights are
// loaded, while its chat template runs.
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <filesystem>
#include <format>
#include <map>
#include <print>
#include <string>
#include <thread>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/server_watch.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

constexpr auto kStopTime = 5s;  // also of SIGTERM

class CancelledLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    // Loading takes some tenths of a second: repacked weights.
    modelgen::ModelSpec spec;
    spec.shape = "small";
    spec.quant = "q4_0";
    const auto made = modelgen::write_model(spec, models_ / "large.gguf");
    ASSERT_TRUE(made.has_value()) << made.error().message;
    for (const auto& [name, source] :
         {std::pair{"loop", "{% for i in range(1000000000000) %}{% endfor %}"},
          std::pair{"growing",
                    "{% set n = namespace(s=['x']) %}{% for i in range(100000) %}"
                    "{% set n.s = n.s + ['x'] %}{% endfor %}"}}) {
      with_changes(
          kTestPaths.bundled_model, models_.path() / (std::string(name) + ".gguf"),
          [source](auto* file) { gguf_set_val_str(file, "tokenizer.chat_template", source); });
    }
  }
  RunningServer start() const {
    return RunningServer(data_.path(),
                         {"--no-model", "--models-dir", models_.path().string(), "-t", "1"});
  }
  static int start_load(RunningServer& server, const std::string& model) {
    const auto response =
        http_client(server.url).Post("/api/v1/models/" + model + "/load", "", "application/json");
    return response ? response->status : 0;
  }
  // So that every load is checked.
  void forget_checks() const { std::filesystem::remove(data_ / "checked-models"); }

  const TempFolder data_, models_;
};

TEST_F(CancelledLoad, EndsAtOnceAtAnyMoment) {
  RunningServer server = start();
  std::map<std::string, int> states;
  Clock::duration longest{};
  for (const char* model : {"large", "loop", "growing"}) {
    for (int moment = 0; moment < 8; ++moment) {
      SCOPED_TRACE(std::format("{} after {} ms", model, 80 * moment));
      forget_checks();
      ASSERT_EQ(start_load(server, model), 202);
      // The moment is arbitrary; this is not a wait for a condition.
      std::this_thread::sleep_for(80ms * moment);
      ++states[server.get(std::format("/api/v1/models/{}", model)).value("state", "")];
      const auto began = Clock::now();
      ASSERT_EQ(server.unload(model), 202);
      longest = std::max(longest, Clock::now() - began);
      // The server and its helper: the child has ended.
      EXPECT_TRUE(wait_until([&] { return process_tree_size(server.program.pid()) <= 2; }));
    }
  }
  EXPECT_LT(longest, kStopTime);
  EXPECT_GE(states["loading"], 5);
  std::println("{} loads cancelled, longest {} ms", states["loading"],
               std::chrono::duration_cast<std::chrono::milliseconds>(longest).count());
  EXPECT_EQ(server.load("large"), "");
}

TEST_F(CancelledLoad, StopEndsTheServerAtAnyMoment) {
  for (const char* model : {"large", "loop"}) {
    for (int moment = 0; moment < 6; ++moment) {
      SCOPED_TRACE(std::format("{} after {} ms", model, 100 * moment));
      forget_checks();
      RunningServer server = start();
      ASSERT_EQ(start_load(server, model), 202);
      std::this_thread::sleep_for(100ms * moment);
      const auto began = Clock::now();
      server.program.signal(SIGTERM);
      EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
      EXPECT_LT(Clock::now() - began, kStopTime);
    }
  }
}

}  // namespace
}  // namespace tt::test
