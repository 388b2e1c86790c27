// A model that passed the check and crashes the server later is not loaded again unasked.
#include <gtest/gtest.h>
#include <httplib.h>

#include <csignal>
#include <filesystem>
#include <format>
#include <fstream>
#include <string>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

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
      // The log has a thread of its own.
      EXPECT_TRUE(wait_until([&] { return server.program.stderr_text().contains("crashed"); }))
          << server.program.stderr_text();
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

// The value of a setting in a file of the tree.
std::string setting_in(const std::string& file, const std::string& name) {
  std::ifstream in(source_path(file));
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(name);
    if (at != std::string::npos && line.find_first_not_of(' ') == at)
      return line.substr(at + name.size());
  }
  return "";
}

pid_t child_of(pid_t parent) {
  pid_t child = 0;
  std::ifstream(std::format("/proc/{0}/task/{0}/children", parent)) >> child;
  return child;
}

// A shell does what the unit and the container say: start it again after a failure.
TEST_F(CrashedModel, IsNamedByTheRestartedServerWithinTwoSeconds) {
  EXPECT_EQ(setting_in("server/systemd/tensor-trace.service.in", "Restart="), "on-failure");
  EXPECT_EQ(setting_in("server/systemd/tensor-trace.service.in", "RestartSec="), "500ms");
  EXPECT_EQ(setting_in("server/systemd/tensor-trace.service.in", "StartLimitIntervalSec="), "0");
  EXPECT_EQ(setting_in("docker/compose.yaml", "restart: "), "on-failure");
  std::vector<std::string> arguments =
      RunningServer::arguments(data_.path(), {"--model", model_.string()});
  arguments.insert(arguments.begin(),
                   {"-c", "until \"$@\"; do sleep 0.5; done", "sh", kTestPaths.server});
  Program supervisor(arguments, {}, "/bin/sh");
  std::string url = supervisor.read_line();
  const auto get = [&](const std::string& path) {
    const auto response = http_client(url).Get(path);
    return response ? json::parse(response->body, nullptr, false) : json::object();
  };
  const auto post = [&](const std::string& path, const std::string& body) {
    const auto response = http_client(url).Post(path, body, "application/json");
    EXPECT_TRUE(response && response->status == 202) << supervisor.stderr_text();
    return response ? json::parse(response->body, nullptr, false) : json::object();
  };
  std::vector<std::string> sessions;
  for (int crash = 0; crash < 3; ++crash) {
    SCOPED_TRACE(crash);
    if (crash > 0) post("/api/v1/models/small/load", "");  // asked
    ASSERT_TRUE(wait_until([&] { return get("/api/v1/health")["model_state"] == "loaded"; }));
    sessions.push_back(
        post("/api/v1/generate", R"({"prompt": "Once", "max_tokens": 4000, "ignore_eos": true})")
            .value("id", ""));
    ASSERT_TRUE(wait_until(
        [&] { return get("/api/v1/sessions/" + sessions.back()).value("steps", 0) >= 5; }));
    const auto began = Clock::now();
    ASSERT_EQ(kill(child_of(supervisor.pid()), SIGSEGV), 0);
    url = supervisor.read_line();
    EXPECT_EQ(get("/api/v1/health")["model_state"], "failed");
    EXPECT_LT(Clock::now() - began, 2s);
    const std::string error = get("/api/v1/models/small").value("error", "");
    EXPECT_TRUE(error.contains(model_.string()) && error.contains("SIGSEGV")) << error;
    for (const std::string& session : sessions) {
      const json found = get("/api/v1/sessions/" + session);
      EXPECT_EQ(found.value("state", ""), "recovered") << found;
      EXPECT_GE(found.value("steps", 0), 5);
    }
  }
  ASSERT_EQ(kill(child_of(supervisor.pid()), SIGTERM), 0);
  EXPECT_EQ(supervisor.wait(), 0);
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
