// tt-server under injected faults (full disk, missing model, lost permissions, clock set
// back): the user gets an error message and no recorded data is lost.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/read_only_folder.h"
#include "tests/support/small_disk.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt {
namespace {

using namespace test;
namespace fs = std::filesystem;

const std::vector<std::string> kOneThread = {"-t", "1", "-tb", "1"};

std::vector<std::string> with_one_thread(std::vector<std::string> more) {
  more.insert(more.end(), kOneThread.begin(), kOneThread.end());
  return more;
}

// The id of the accepted request; empty when it was rejected.
std::string generate(RunningServer& server, const json& body) {
  httplib::Client client = http_client(server.url);
  const auto accepted = client.Post("/api/v1/generate", body.dump(), "application/json");
  return accepted && accepted->status == 202 ? json::parse(accepted->body)["id"].get<std::string>()
                                             : "";
}

json long_request() { return {{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}}; }

// The JSON log lines of one session.
std::vector<json> log_of(const RunningServer& server, const std::string& session) {
  std::vector<json> lines;
  std::istringstream log(server.program.stderr_text());
  for (std::string line; std::getline(log, line);) {
    json parsed = json::parse(line, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << line;
    if (parsed.value("session", "") == session) lines.push_back(std::move(parsed));
  }
  return lines;
}

// The status, the live events and the log report the same error: the recording of this
// session ended early.
void expect_disk_full_reported(RunningServer& server, const std::string& id, WsClient& listener) {
  const json status = server.wait_for_end(id);
  const std::string error = status.value("error", json()).is_string() ? status["error"] : "";
  EXPECT_NE(error.find("full"), std::string::npos) << status;

  json last;
  for (;;) {
    const WsFrame frame = listener.read();
    if (frame.opcode == -1 || frame.opcode == kClose) break;
    if (frame.opcode != kText) continue;
    const json event = json::parse(frame.payload);
    if (event["type"] == "state" && event["session"] == id) last = event;
    if (last.is_object() && last["state"] != "running" && last["state"] != "queued") break;
  }
  ASSERT_TRUE(last.is_object());
  EXPECT_EQ(last["error"], error);

  std::vector<json> lines;
  EXPECT_TRUE(wait_until([&] { return (lines = log_of(server, id)).size() >= 2; }));
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines.back()["level"], "warning");
  EXPECT_EQ(lines.back()["model"], status["model"]);
  EXPECT_EQ(lines.back()["error"], error);
}

TEST(FaultInjection, DiskFullDuringRecording) {
  const test::SmallDisk folder(2);
  ASSERT_EQ(folder.problem(), "");
  // With a disk reserve the request would be rejected; DiskReserveReached tests that.
  RunningServer server(folder.path(), with_one_thread({"--log-json", "--disk-reserve", "0"}));
  ASSERT_TRUE(server.wait_until_loaded());
  WsClient listener(server.port());
  listener.send(kText, R"({"type": "subscribe", "session": "*", "kinds": []})");
  const json body = long_request();
  std::string id;
  // Records sessions until one does not fit.
  for (int i = 0; i < 50; ++i) {
    id = generate(server, body);
    ASSERT_FALSE(id.empty());
    if (!server.wait_for_end(id)["error"].is_null()) break;
  }
  const json status = server.wait_for_end(id);
  ASSERT_FALSE(status["error"].is_null()) << "the disk never became full";
  EXPECT_EQ(status["state"], "done") << "generation does not need the disk";
  EXPECT_EQ(status["generated"], 900);
  expect_disk_full_reported(server, id, listener);

  // Committed steps are in the file; the file records how many are missing.
  const json session = server.get("/api/v1/sessions/" + id);
  EXPECT_EQ(session["state"], "failed") << session;
  EXPECT_GT(session["losses"]["steps_not_written"], 0) << session;
  for (const auto& file : fs::directory_iterator(folder.path())) {
    if (file.path().extension() != ".ttrace") continue;
    const auto faults = check_session(file.path());
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << file.path() << ": " << faults->front();
  }

  // After space was freed, the next session is recorded without a restart.
  for (const auto& file : fs::directory_iterator(folder.path())) fs::remove(file.path());
  const std::string next = generate(server, {{"prompt", "Once"}, {"max_tokens", 4}});
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(server.wait_for_end(next)["error"], nullptr);
  EXPECT_EQ(server.get("/api/v1/sessions/" + next)["state"], "done");
}

// The problem document of a rejected request.
json rejection_of(RunningServer& server, int status) {
  httplib::Client client = http_client(server.url);
  const auto rejected =
      client.Post("/api/v1/generate", R"({"prompt": "Once"})", "application/json");
  if (!rejected) return json::object();
  EXPECT_EQ(rejected->status, status) << rejected->body;
  EXPECT_EQ(rejected->get_header_value("Content-Type"), "application/problem+json");
  return json::parse(rejected->body, nullptr, false);
}

TEST(FaultInjection, DiskReserveReached) {
  const test::SmallDisk folder(4);
  ASSERT_EQ(folder.problem(), "");
  std::string recorded;
  {
    RunningServer before(folder.path(), with_one_thread({"--disk-reserve", "0"}));
    ASSERT_TRUE(before.wait_until_loaded());
    recorded = generate(before, {{"prompt", "Once"}, {"max_tokens", 4}});
    EXPECT_EQ(before.wait_for_end(recorded)["state"], "done");
  }
  RunningServer server(folder.path(), kOneThread);
  ASSERT_TRUE(server.wait_until_loaded());
  const json problem = rejection_of(server, 507);
  EXPECT_EQ(problem["code"], "quota_reached");
  EXPECT_NE(problem.value("detail", "").find("Delete sessions"), std::string::npos) << problem;
  EXPECT_EQ(server.get("/api/v1/sessions/" + recorded)["state"], "done")
      << "the recorded session is lost";
}

TEST(FaultInjection, QuotaReachedByRunningSession) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), with_one_thread({"--keep-bytes", "10000"}));
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string running = server.start_long_request();
  ASSERT_FALSE(running.empty());
  EXPECT_TRUE(wait_until(
      [&] { return server.get("/api/v1/sessions/" + running).value("file_bytes", 0) > 10'000; }));
  const json problem = rejection_of(server, 507);
  EXPECT_EQ(problem["code"], "quota_reached");
  EXPECT_NE(problem.value("detail", "").find("--keep-bytes"), std::string::npos) << problem;
  http_client(server.url).Delete("/api/v1/generate/" + running);
  EXPECT_EQ(server.wait_for_end(running)["state"], "cancelled")
      << "it must run until it is cancelled";
  EXPECT_EQ(server.wait_for_end(running)["error"], nullptr);
  const auto faults = check_session(folder.path() / (running + ".ttrace"));
  ASSERT_TRUE(faults.has_value()) << faults.error().message;
  EXPECT_TRUE(faults->empty()) << faults->front();
}

// The running request keeps its mapped file; a later request would use another model.
TEST(FaultInjection, ModelFileRemovedOrReplacedWhileInUse) {
  for (const bool replaced : {false, true}) {
    SCOPED_TRACE(replaced ? "replaced" : "removed");
    const test::TempFolder folder;
    const fs::path model = folder / "model.gguf";
    fs::copy_file(kTestPaths.bundled_model, model);
    RunningServer server(folder / "data", with_one_thread({"--model", model.string()}));
    ASSERT_TRUE(server.wait_until_loaded());
    const std::string running = server.start_long_request();
    ASSERT_FALSE(running.empty());
    if (replaced) {
      std::ofstream(folder / "other") << "not a model";
      fs::rename(folder / "other", model);
    } else {
      fs::remove(model);
    }
    const json problem = rejection_of(server, 409);
    EXPECT_EQ(problem["code"], "model_changed");
    EXPECT_NE(problem.value("detail", "").find(model.string()), std::string::npos) << problem;
    const int steps = server.get("/api/v1/sessions/" + running)["steps"];
    EXPECT_TRUE(wait_until([&] {
      return server.get("/api/v1/sessions/" + running).value("steps", 0) > steps + 5;
    })) << "the running request must not be affected";
    http_client(server.url).Delete("/api/v1/generate/" + running);
    EXPECT_EQ(server.wait_for_end(running)["state"], "cancelled");
    EXPECT_EQ(server.wait_for_end(running)["error"], nullptr);
    const auto faults = check_session(folder.path() / "data" / (running + ".ttrace"));
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
  }
}

TEST(FaultInjection, ModelFileNotReadable) {
  const test::TempFolder folder;
  const fs::path model = folder / "model.gguf";
  fs::copy_file(kTestPaths.bundled_model, model);
  fs::permissions(model, fs::perms::none);
  ASSERT_TRUE(test::drop_permission_override());
  RunningServer server(folder / "data", with_one_thread({"--model", model.string()}));
  EXPECT_FALSE(server.wait_until_loaded());
  const json health = server.get("/api/v1/health");
  EXPECT_EQ(health["model_state"], "failed") << health;
  const json entry = server.get("/api/v1/models/model");
  const std::string error = entry.value("error", "");
  EXPECT_NE(error.find(model.string()), std::string::npos) << entry;
  EXPECT_NE(error.find("ermission"), std::string::npos) << entry;
  EXPECT_TRUE(generate(server, {{"prompt", "Once"}, {"max_tokens", 4}}).empty());
  // With the permission restored, it loads without a restart.
  fs::permissions(model, fs::perms::owner_read);
  httplib::Client client = http_client(server.url);
  const auto loading = client.Post("/api/v1/models/model/load");
  ASSERT_TRUE(loading);
  EXPECT_EQ(loading->status, 202) << loading->body;
  EXPECT_TRUE(wait_until([&] { return server.get("/api/v1/models/model")["state"] == "loaded"; }))
      << server.get("/api/v1/models/model");
  EXPECT_EQ(server.wait_for_end(generate(server, {{"prompt", "Once"}, {"max_tokens", 4}}))["state"],
            "done");
}

TEST(FaultInjection, SessionFolderNotWritable) {
  const test::TempFolder folder;
  std::string recorded;
  {
    RunningServer before(folder.path(), with_one_thread({"--disk-reserve", "0"}));
    ASSERT_TRUE(before.wait_until_loaded());
    recorded = generate(before, {{"prompt", "Once"}, {"max_tokens", 4}});
    EXPECT_EQ(before.wait_for_end(recorded)["state"], "done");
  }
  const test::ReadOnlyFolder read_only(folder.path());
  ASSERT_EQ(read_only.problem(), "");
  RunningServer server(folder.path(), with_one_thread({"--log-json", "--disk-reserve", "0"}));
  ASSERT_TRUE(server.wait_until_loaded());
  EXPECT_TRUE(wait_until([&] { return server.program.stderr_text().contains("not writable"); }))
      << "the log must contain a warning: " << server.program.stderr_text();
  // Existing sessions can be read.
  EXPECT_EQ(server.get("/api/v1/sessions/" + recorded)["state"], "done");
  EXPECT_GT(server.get("/api/v1/sessions/" + recorded + "/steps")["total"], 0);
  // Generation works and reports that it is not recorded.
  const std::string id = generate(server, {{"prompt", "Once"}, {"max_tokens", 4}});
  const json status = server.wait_for_end(id);
  EXPECT_EQ(status["state"], "done");
  EXPECT_EQ(status["generated"], 4);
  ASSERT_TRUE(status["error"].is_string()) << status;
  EXPECT_NE(status["error"].get<std::string>().find("recording"), std::string::npos) << status;
  std::vector<json> lines;
  EXPECT_TRUE(wait_until([&] { return (lines = log_of(server, id)).size() >= 2; }));
  EXPECT_EQ(lines.back()["error"], status["error"]);
}

TEST(FaultInjection, ClockSetBackDuringRecording) {
  const test::TempFolder folder;
  const fs::path back = folder / "back";
  RunningServer server(
      folder / "data", kOneThread,
      {std::string("LD_PRELOAD=") + kTestPaths.set_clock, "TT_TEST_CLOCK_BACK=" + back.string()});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string first = server.start_long_request();
  ASSERT_FALSE(first.empty());
  std::ofstream(back) << "now";
  const int steps = server.get("/api/v1/sessions/" + first)["steps"];
  EXPECT_TRUE(wait_until(
      [&] { return server.get("/api/v1/sessions/" + first).value("steps", 0) > steps + 20; }));
  http_client(server.url).Delete("/api/v1/generate/" + first);
  const json ended = server.wait_for_end(first);
  EXPECT_EQ(ended["state"], "cancelled");
  EXPECT_EQ(ended["error"], nullptr);
  const std::string second = generate(server, {{"prompt", "Then"}, {"max_tokens", 4}});
  EXPECT_EQ(server.wait_for_end(second)["error"], nullptr);
  // Checks that the clock went back: ids begin with the date.
  ASSERT_LT(second.substr(0, 8), first.substr(0, 8));

  for (const std::string& id : {first, second}) {
    SCOPED_TRACE(id);
    const auto faults = check_session(folder.path() / "data" / (id + ".ttrace"));
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
    const json listed = server.get("/api/v1/sessions/" + id + "/steps?limit=10000");
    ASSERT_FALSE(listed["steps"].empty());
    std::int64_t before = 0;
    for (const json& step : listed["steps"]) {
      EXPECT_GE(step["begin_ns"], before) << step["step"];
      EXPECT_GE(step["end_ns"], step["begin_ns"]) << step["step"];
      EXPECT_LT(step["end_ns"], 3'600'000'000'000) << "a test does not take a day";
      before = step["end_ns"];
    }
  }
  const json sessions = server.get("/api/v1/sessions");
  EXPECT_EQ(sessions["total"], 2);
}

TEST(FaultInjection, PortInUse) {
  const test::TempFolder folder;
  RunningServer first(folder / "first");
  Program second(
      {"--port", std::to_string(first.port()), "--data-dir", (folder / "second").string()});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_NE(second.stderr_text().find("is in use by another program; choose another port"),
            std::string::npos)
      << second.stderr_text();
  EXPECT_EQ(first.get("/api/v1/health")["version"], TT_VERSION) << "the first server keeps running";
}

TEST(FaultInjection, FileDescriptorsExhausted) {
  const test::TempFolder folder;
  constexpr int kHandles = 64;
  RunningServer server(folder.path(), with_one_thread({"--log-json", "-c", "512"}), {},
                       std::format("ulimit -n {}", kHandles));
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string running = server.start_long_request();
  ASSERT_FALSE(running.empty());
  {
    std::vector<RawClient> clients;
    for (int i = 0; i < 3 * kHandles; ++i) clients.emplace_back(server.port());
    // Idle connections are closed for active ones, and every request gets a response.
    for (int i = 0; i < 5; ++i) {
      RawClient late(server.port());
      EXPECT_EQ(late.exchange(get_request("/api/v1/health")).status, 200);
    }
    // A request that needs a descriptor of its own gets one or returns an error.
    RawClient asking(server.port());
    const auto answer = asking.exchange(get_request("/api/v1/sessions/" + running));
    if (answer.status != 200) {
      const json problem = json::parse(answer.body, nullptr, false);
      EXPECT_TRUE(answer.status == 500 || answer.status == 503) << answer.status;
      EXPECT_NE(problem.value("detail", ""), "") << answer.body;
    }
  }
  EXPECT_TRUE(wait_until([&] {
    return server.get("/api/v1/sessions/" + running).value("steps", 0) > 0;
  })) << "the server does not recover";
  const json status = server.wait_for_end(running);
  EXPECT_EQ(status["error"], nullptr);
  // Every token is recorded. (On a slow disk evaluations share a step, so steps are not counted.)
  EXPECT_EQ(status["prompt_tokens"].get<int>() + status["generated"].get<int>(),
            server.get("/api/v1/sessions/" + running)["tokens"]);
  const std::string next = generate(server, {{"prompt", "Once"}, {"max_tokens", 4}});
  EXPECT_EQ(server.wait_for_end(next)["error"], nullptr);
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  for (const std::string& id : {running, next}) {
    const auto faults = check_session(folder.path() / (id + ".ttrace"));
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
  }
}

}  // namespace
}  // namespace tt
