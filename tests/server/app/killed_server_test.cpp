// tt-server is killed at arbitrary points and restarted on the same folder: every session
// opens, is valid and contains all committed data.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <print>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

enum class KillPoint { Starting, Loading, ProcessingPrompt, Decoding, Finishing, Idle };

const char* name_of(KillPoint point) {
  constexpr const char* kNames[] = {"starting", "loading",   "processing the prompt",
                                    "decoding", "finishing", "idle"};
  return kNames[static_cast<std::size_t>(point)];
}

// A session as reported by the session list.
struct ListedSession {
  int steps = 0, tokens = 0;
  std::string state;
};
using Sessions = std::map<std::string, ListedSession>;

// The path for LD_PRELOAD; in the same folder as set_clock.
std::string kill_points() {
  return fs::path(kTestPaths.set_clock).replace_filename("libkill_points_module.so").string();
}

const std::vector<std::string> kSmallSteps = {"-t", "1", "-c", "1024", "-b", "32", "-ub", "32"};

class KilledServer : public ::testing::Test {
 protected:
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(rng_() % count); }
  // The kill comes at a random moment of what the server does, so this is not a wait for a
  // condition.
  void sleep_up_to(Clock::duration limit) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
    std::this_thread::sleep_for(
        std::chrono::microseconds(below(static_cast<std::uint32_t>(us) + 1)));
  }

  static Sessions listed(RunningServer& server) {
    Sessions out;
    for (const json& session : server.get("/api/v1/sessions?limit=1000")["sessions"])
      out[session["id"]] = {session["steps"], session["tokens"], session["state"]};
    return out;
  }

  static std::string generate(RunningServer& server, const json& body) {
    const auto accepted =
        http_client(server.url).Post("/api/v1/generate", body.dump(), "application/json");
    EXPECT_TRUE(accepted && accepted->status == 202);
    return json::parse(accepted->body)["id"];
  }

  void expect_valid_session(RunningServer& server, const std::string& id, int steps) const {
    SCOPED_TRACE(id);
    EXPECT_EQ(server.get("/api/v1/sessions/" + id)["steps"], steps);
    EXPECT_EQ(server.get("/api/v1/sessions/" + id + "/steps")["total"], steps);
    if (steps > 0) {
      const json ops =
          server.get("/api/v1/sessions/" + id + "/steps/" + std::to_string(steps - 1) + "/ops");
      EXPECT_TRUE(ops.contains("ops")) << ops;
    }
    const auto faults = check_session(data_.path() / (id + ".ttrace"));
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
  }

  // For a server that has just been started: all data reported by the previous one is present.
  void expect_recovered(RunningServer& server) const {
    const Sessions now = listed(server);
    for (const auto& [id, was] : listed_before_) {
      SCOPED_TRACE(id);
      ASSERT_TRUE(now.contains(id));
      const ListedSession& is = now.at(id);
      if (was.state == "running") {
        EXPECT_GE(is.steps, was.steps);
        EXPECT_GE(is.tokens, was.tokens);
        EXPECT_TRUE(is.state == "recovered" || is.state == "done") << is.state;
      } else {
        EXPECT_EQ(is.steps, was.steps);
        EXPECT_EQ(is.tokens, was.tokens);
        EXPECT_EQ(is.state, was.state);
      }
    }
    for (const auto& [id, is] : now)
      if (!listed_before_.contains(id) || listed_before_.at(id).state == "running")
        expect_valid_session(server, id, is.steps);
    for (const auto& entry : fs::directory_iterator(data_.path())) {
      const std::string name = entry.path().filename().string();
      EXPECT_FALSE(name.contains(".ttrace-") && !name.ends_with("-new")) << name;
    }
  }

  // Brings the server to `moment`. True: the server then kills itself there.
  bool run_until(KillPoint point, RunningServer& server) {
    const json some_tokens = std::vector<int>(700, 5);
    switch (point) {
      case KillPoint::Starting:
        return false;
      case KillPoint::Loading:
        sleep_up_to(loading_);
        return false;
      case KillPoint::ProcessingPrompt: {
        const std::string id = generate(server, {{"tokens", some_tokens}, {"max_tokens", 4}});
        const auto limit = static_cast<int>(below(600));
        json status;
        do {
          status = server.get("/api/v1/generate/" + id);
        } while (status["state"] == "queued" || status["prompt_done"] < limit);
        EXPECT_EQ(status["generated"], 0);
        return false;
      }
      case KillPoint::Decoding: {
        server.start_long_request();
        sleep_up_to(300ms);
        return false;
      }
      case KillPoint::Finishing:
        generate(server, {{"prompt", "Once"}, {"max_tokens", 12}, {"ignore_eos", true}});
        return true;
      case KillPoint::Idle:
        server.wait_for_end(
            generate(server, {{"prompt", "Once"}, {"max_tokens", 12}, {"ignore_eos", true}}));
        sleep_up_to(20ms);
        return false;
    }
    return false;
  }

  const TempFolder data_;
  Sessions listed_before_;
  Clock::duration loading_{};
  std::mt19937 rng_{17};
};

TEST_F(KilledServer, SessionsAreRecoveredAfterKillAtAnyPoint) {
  std::vector<KillPoint> points;
  for (int i = 0; i < 4; ++i)
    points.insert(points.end(), {KillPoint::ProcessingPrompt, KillPoint::Starting,
                                 KillPoint::Loading, KillPoint::Decoding, KillPoint::Starting,
                                 KillPoint::Finishing, KillPoint::Idle, KillPoint::Finishing});
  {
    RunningServer first(data_.path(), kSmallSteps);
    const auto began = Clock::now();
    ASSERT_TRUE(first.wait_until_loaded());
    loading_ = Clock::now() - began;
    first.program.signal(SIGTERM);
    ASSERT_EQ(first.program.wait(), 0);
  }
  std::map<std::string, int> ends;  // sessions by final state
  std::map<KillPoint, int> kills;
  std::uint32_t write_count = 1;
  for (const KillPoint point : points) {
    SCOPED_TRACE(name_of(point));
    ++kills[point];
    if (point == KillPoint::Starting) {  // while it recovers the sessions of the previous one
      Program program(RunningServer::arguments(data_.path(), kSmallSteps));
      sleep_up_to(60ms);
      program.signal(SIGKILL);
      EXPECT_EQ(program.wait(), -SIGKILL);
      continue;
    }
    std::vector<std::string> environment;
    if (point == KillPoint::Finishing) {
      environment = {"LD_PRELOAD=" + kill_points(),
                     "TT_TEST_DIE_IN_FINISH=" + std::to_string(write_count)};
      write_count += 3;
    }
    RunningServer server(data_.path(), kSmallSteps, environment);
    ASSERT_TRUE(server.url.starts_with("http://")) << server.program.stderr_text();
    expect_recovered(server);
    ASSERT_FALSE(HasFailure());
    if (point != KillPoint::Loading) {
      ASSERT_TRUE(server.wait_until_loaded());
    }
    listed_before_ = listed(server);
    if (!run_until(point, server)) {
      if (point != KillPoint::Loading) listed_before_ = listed(server);
      server.program.signal(SIGKILL);
    }
    EXPECT_EQ(server.program.wait(), -SIGKILL);
  }
  RunningServer last(data_.path(), kSmallSteps);
  expect_recovered(last);
  for (const auto& [id, is] : listed(last)) {
    expect_valid_session(last, id, is.steps);
    ++ends[is.state];
  }
  for (const auto& [point, count] : kills) std::println("{:>3} kills {}", count, name_of(point));
  for (const auto& [end, count] : ends) std::println("{:>3} sessions {}", count, end);
  // Kills during a prompt, a decode or a finish leave recovered sessions; idle ones are done.
  EXPECT_GE(ends["recovered"], 8);
  EXPECT_GE(ends["done"], 4);
  EXPECT_TRUE(last.wait_until_loaded());
  last.program.signal(SIGTERM);
  EXPECT_EQ(last.program.wait(), 0);
}

}  // namespace
}  // namespace tt::test
