// A model that passed the check and crashes the server later is not loaded again unasked.
#include <gtest/gtest.h>
#include <httplib.h>

#include <csignal>
#include <filesystem>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

class CrashedModel : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::copy_file(kTestPaths.bundled_model, model_); }
  // Ends the server with `signal` while it generates.
  void crash(int signal) {
    RunningServer server = start();
    ASSERT_TRUE(server.wait_until_loaded()) << server.program.stderr_text();
    ASSERT_FALSE(server.start_long_request().empty());
    server.program.signal(signal);
    ASSERT_EQ(server.program.wait(), -signal) << server.program.stderr_text();
  }
  RunningServer start() { return RunningServer(data_.path(), {"--model", model_.string()}); }
  static std::string state(RunningServer& server) {
    return server.get("/api/v1/models/small").value("state", "");
  }

  const TempFolder data_, models_;
  const std::filesystem::path model_ = models_ / "small.gguf";
};

TEST_F(CrashedModel, IsLoadedOnlyOnRequest) {
  for (const auto& [signal, name] :
       {std::pair{SIGSEGV, "SIGSEGV"}, std::pair{SIGABRT, "SIGABRT"}}) {
    SCOPED_TRACE(name);
    crash(signal);
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto began = Clock::now();
      RunningServer server = start();
      const json model = server.get("/api/v1/models/small");
      EXPECT_LT(Clock::now() - began, 2s);
      EXPECT_EQ(model["state"], "failed");
      const std::string error = model.value("error", "");
      EXPECT_TRUE(error.contains(model_.string()) && error.contains(name)) << error;
      EXPECT_TRUE(server.program.stderr_text().contains("crashed")) << server.program.stderr_text();
      EXPECT_EQ(server.get("/api/v1/health")["model_state"], "failed");
      const auto request = http_client(server.url)
                               .Post("/api/v1/generate", R"({"prompt": "a"})", "application/json");
      ASSERT_TRUE(request);
      EXPECT_EQ(request->status, 503);
      EXPECT_TRUE(request->body.contains(name)) << request->body;
      // The recording of the crashed generation is recovered.
      EXPECT_FALSE(server.get("/api/v1/sessions")["sessions"].empty());
    }
    RunningServer server = start();
    const auto load =
        http_client(server.url).Post("/api/v1/models/small/load", "", "application/json");
    ASSERT_TRUE(load);
    EXPECT_EQ(load->status, 202) << load->body;
    EXPECT_TRUE(server.wait_until_loaded());
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0);
    RunningServer again = start();
    EXPECT_TRUE(again.wait_until_loaded()) << "it was loaded on request since";
  }
}

TEST_F(CrashedModel, IsLoadedAgainAfterItsFileWasReplaced) {
  crash(SIGSEGV);
  std::filesystem::last_write_time(model_, std::filesystem::file_time_type::clock::now() + 1s);
  RunningServer server = start();
  EXPECT_TRUE(server.wait_until_loaded()) << server.program.stderr_text();
}

TEST_F(CrashedModel, KilledServerLoadsItsModelAgain) {
  crash(SIGKILL);
  RunningServer server = start();
  EXPECT_TRUE(server.wait_until_loaded()) << server.program.stderr_text();
}

TEST_F(CrashedModel, IdleServerThatCrashesDoesNotBlameTheModel) {
  {
    RunningServer server = start();
    ASSERT_TRUE(server.wait_until_loaded());
    server.program.signal(SIGSEGV);
    ASSERT_EQ(server.program.wait(), -SIGSEGV);
  }
  RunningServer server = start();
  EXPECT_TRUE(server.wait_until_loaded()) << server.program.stderr_text();
}

}  // namespace
}  // namespace tt::test
