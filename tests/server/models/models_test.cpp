// Several models over HTTP: listed, loaded, swapped, removed while in use.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/models/model_files.h"
#include "tests/server/support/test_server.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
class Models : public ::testing::Test {
 protected:
  Models() { ensure_backends_loaded(); }

  static TestServerOptions of(const TempFolder& folder, std::size_t loaded = 1) {
    return {.model = {}, .models = folder.path(), .models_loaded = loaded};
  }
};

json entry(TestServer& server, const std::string& id) {
  return server.get("/api/v1/models/" + id).body;
}

TestResponse load(TestServer& server, const std::string& id) {
  return server.post("/api/v1/models/" + id + "/load", "");
}
TestResponse unload(TestServer& server, const std::string& id) {
  return server.post("/api/v1/models/" + id + "/unload", "");
}

bool reaches_state(TestServer& server, const std::string& id, const std::string& state) {
  json last;
  const bool came = wait_until([&] {
    last = entry(server, id);
    return last["state"] == state || last["state"] == "failed";
  });
  EXPECT_EQ(last["state"], json(state)) << last;
  return came && last["state"] == state;
}

bool load_and_wait(TestServer& server, const std::string& id) {
  const TestResponse answer = load(server, id);
  EXPECT_EQ(answer.status, 202) << answer.body;
  return answer.status == 202 && reaches_state(server, id, "loaded");
}

json tokens(std::vector<int> ids, int more) {
  return {{"tokens", std::move(ids)}, {"max_tokens", more}, {"ignore_eos", true}};
}
const json kLongRequest = {{"tokens", {1, 2, 3}}, {"max_tokens", 1000}, {"ignore_eos", true}};

std::string run(TestServer& server, const std::string& model, const json& body) {
  json with = body;
  if (!model.empty()) with["model"] = model;
  const std::string id = server.generate(with);
  const json ended = server.wait_for_end(id);
  EXPECT_EQ(ended["state"], "done") << ended;
  EXPECT_EQ(ended["model"], model.empty() ? ended["model"] : json(model));
  return id;
}

std::size_t count_open_files() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator{}));
}

// Without the workers of the front end and of the query queue: there is one more of them when a
// request comes before the worker of the previous one has become idle, and none of them ends.
std::size_t count_threads() {
  constexpr std::array<std::string_view, 3> kWorkers = {"http-worker", "http-urgent", "query"};
  return static_cast<std::size_t>(
      std::ranges::count_if(fs::directory_iterator("/proc/self/task"), [&](const auto& task) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        return !std::ranges::contains(kWorkers, name);
      }));
}

// The threads that compute graphs: that of each loaded model, and those that OpenMP keeps for it.
std::size_t count_compute_threads() {
  return static_cast<std::size_t>(
      std::ranges::count_if(fs::directory_iterator("/proc/self/task"), [](const auto& task) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        return name.starts_with("eval-");
      }));
}

// Anonymous resident memory of this process.
double anonymous_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib * 1024 / 1e6;
  }
  ADD_FAILURE() << "no RssAnon in /proc/self/status";
  return 0;
}

// With more OpenMP threads than processors, each op waits for the other threads of its model to be
// woken: 150 instead of 1 context switches in a step of two loaded models with 2 threads.
TEST_F(Models, AnIdleModelKeepsNoComputeThreads) {
  const TempFolder folder;
  copy_model(folder.path(), "first", "small");
  copy_model(folder.path(), "second", "moe");
  TestServerOptions options = of(folder, 2);
  options.context.threads = options.context.threads_batch = 3;
  TestServer server(options);
  for (const char* model : {"first", "second"}) {
    ASSERT_TRUE(load_and_wait(server, model));
    run(server, model, tokens({1, 2, 3}, 4));
  }
  EXPECT_TRUE(wait_until([] { return count_compute_threads() == 2; })) << count_compute_threads();
  json with = kLongRequest;
  with["model"] = "second";
  const std::string id = server.generate(with);
  EXPECT_TRUE(wait_until([] { return count_compute_threads() == 4; })) << count_compute_threads();
  server.wait_for_end(id);
  EXPECT_TRUE(wait_until([] { return count_compute_threads() == 2; })) << count_compute_threads();
}

TEST_F(Models, AreListedWithIdAndError) {
  const TempFolder folder;
  copy_model(folder.path(), "dense", "small");
  copy_model(folder.path() / "other", "dense", "moe");
  copy_model(folder.path(), "with space, & more", "bert");
  for (const fs::path& part : model_files("small", 3)) fs::copy(part, folder.path());
  std::ofstream(folder.path() / "broken.gguf") << "GGUF, but not really";
  TestServer server(of(folder));

  const json list = server.get("/api/v1/models").body;
  EXPECT_EQ(list["folder"].get<std::string>(), folder.path().string());
  std::set<std::string> ids;
  for (const json& model : list["models"]) ids.insert(model["id"]);
  EXPECT_EQ(ids, (std::set<std::string>{"broken", "dense", "dense-2", "small-3-2",
                                        "with_space____more"}));
  EXPECT_EQ(entry(server, "dense")["state"], "available");
  EXPECT_EQ(entry(server, "dense")["files"], 1);
  EXPECT_EQ(entry(server, "dense")["path"], json((folder.path() / "dense.gguf").string()));
  EXPECT_EQ(entry(server, "dense-2")["path"],
            json((folder.path() / "other" / "dense.gguf").string()));
  EXPECT_EQ(entry(server, "small-3-2")["files"], 3);
  EXPECT_FALSE(entry(server, "dense").contains("n_layers")) << "only when it is loaded";
  EXPECT_EQ(entry(server, "broken")["state"], "failed");
  EXPECT_NE(entry(server, "broken")["error"].get<std::string>().find("broken.gguf"),
            std::string::npos);
  const TestResponse no = load(server, "broken");
  EXPECT_EQ(no.status, 422);
  EXPECT_EQ(no.body["code"], "model_failed");

  const TestResponse none = server.get("/api/v1/models/unknown");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.body["code"], "not_found");
  EXPECT_EQ(load(server, "unknown").status, 404);
  EXPECT_EQ(unload(server, "unknown").status, 404);
  EXPECT_EQ(server.get("/api/v1/models/..%2fdense").status, 404);

  // New files are found by the next request; an id stays with its file.
  copy_model(folder.path(), "new", "t5");
  EXPECT_EQ(entry(server, "new")["state"], "available");
  fs::remove(folder.path() / "dense.gguf");
  EXPECT_EQ(server.get("/api/v1/models").body["models"].size(), 5U);
  EXPECT_EQ(entry(server, "dense-2")["state"], "available");
  EXPECT_EQ(entry(server, "dense").value("status", 0), 404);
}

// A link that leads outside the folder is listed, and nothing of its target can be read.
TEST_F(Models, LinkOutsideOfFolderIsListedWithReason) {
  const TempFolder folder, outside;
  const fs::path secret = copy_model(outside.path(), "secret", "small");
  fs::create_symlink(secret, folder.path() / "leak.gguf");
  fs::create_symlink(secret, folder.path() / "other.gguf");
  fs::create_symlink(outside.path() / "none", folder.path() / "dangling.gguf");
  TestServer server(of(folder));
  for (const std::string id : {"leak", "other", "dangling"}) {
    json expected = {{"id", id},
                     {"name", id},
                     {"path", (folder.path() / (id + ".gguf")).string()},
                     {"size_bytes", 0},
                     {"files", 1},
                     {"importance_matrix", false},
                     {"state", "failed"},
                     {"load_progress", 0.0},
                     {"warning", nullptr}};
    json seen = entry(server, id);
    const std::string error = seen["error"];
    seen.erase("error");
    EXPECT_EQ(seen, expected);
    EXPECT_NE(error.find("does not lead to a file in the models folder"), std::string::npos);
    EXPECT_EQ(error.find(outside.path().string()), std::string::npos) << error;
    const TestResponse not_loaded = load(server, id);
    EXPECT_EQ(not_loaded.body["code"], "model_failed");
    EXPECT_EQ(not_loaded.body["detail"], error);
    for (const char* part : {"/gguf", "/compression"}) {
      const TestResponse unread = server.get("/api/v1/models/" + id + part);
      EXPECT_EQ(unread.body["code"], "model_damaged") << part;
      EXPECT_EQ(unread.body["detail"], error) << part;
    }
  }
  EXPECT_EQ(server.get("/api/v1/health").body["model_state"], "none");
  // The link becomes a model when its target is inside: another file, so it has another id.
  fs::rename(secret, folder.path() / "inside");
  fs::remove(folder.path() / "leak.gguf");
  fs::create_symlink("inside", folder.path() / "leak.gguf");
  EXPECT_EQ(server.get("/api/v1/models").body["models"].size(), 3U);
  EXPECT_EQ(entry(server, "leak-2")["path"], json((folder.path() / "leak.gguf").string()));
  EXPECT_EQ(entry(server, "leak-2")["state"], "available");
}

TEST_F(Models, RequestWithoutLoadedModelExplainsWhatToDo) {
  const TempFolder folder;
  {
    TestServer server(of(folder));
    EXPECT_EQ(server.get("/api/v1/health").body["model_state"], "none");
    EXPECT_EQ(server.get("/api/v1/health").body["status"], "ok");
    const TestResponse rejected = server.post("/api/v1/generate", tokens({1}, 1).dump());
    EXPECT_EQ(rejected.status, 409);
    EXPECT_EQ(rejected.body["code"], "model_not_loaded");
    EXPECT_NE(rejected.body["detail"].get<std::string>().find("--model"), std::string::npos);
  }
  copy_model(folder.path(), "a", "small");
  copy_model(folder.path(), "b", "small");
  TestServer server(of(folder));
  const auto rejected = [&](const json& body, int status, const char* code, const char* says) {
    const TestResponse answer = server.post("/api/v1/generate", body.dump());
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.type, "application/problem+json");
    EXPECT_EQ(answer.body["code"], code);
    EXPECT_NE(answer.body["detail"].get<std::string>().find(says), std::string::npos)
        << answer.body;
  };
  json body = tokens({1}, 1);
  rejected(body, 409, "model_not_loaded", "available: a, b");
  body["model"] = "a";
  rejected(body, 409, "model_not_loaded", "POST /api/v1/models/a/load");
  body["model"] = "c";
  rejected(body, 400, "bad_request", "Model \"c\" not found");
  ASSERT_TRUE(load_and_wait(server, "a"));
  body["model"] = "b";
  rejected(body, 409, "model_not_loaded", "POST /api/v1/models/b/load");
  run(server, "a", tokens({1, 2}, 2));
  run(server, "", tokens({1, 2}, 2));
}

TEST_F(Models, LoadingEvictsIdleModelAndKeepsResults) {
  const TempFolder folder;
  for (const char* name : {"a", "b", "c"}) copy_model(folder.path(), name, "small");
  TestServer server(of(folder, 2));
  ASSERT_TRUE(load_and_wait(server, "a"));
  const json loaded = entry(server, "a");
  EXPECT_EQ(loaded["architecture"], "llama");
  EXPECT_EQ(loaded["n_layers"], 2);
  EXPECT_EQ(server.get("/api/v1/health").body["model_state"], "loaded");
  ASSERT_TRUE(load_and_wait(server, "b"));
  const std::string by_b = run(server, "b", tokens({1, 2, 3}, 3));
  const std::string by_a = run(server, "a", tokens({1, 2, 3}, 3));  // b has been idle longer
  const TestResponse which = server.post("/api/v1/generate", tokens({1}, 1).dump());
  EXPECT_EQ(which.status, 400);
  EXPECT_NE(which.body["detail"].get<std::string>().find("a, b"), std::string::npos) << which.body;

  ASSERT_TRUE(load_and_wait(server, "c"));
  EXPECT_TRUE(reaches_state(server, "b", "available"));
  EXPECT_EQ(entry(server, "a")["state"], "loaded");
  EXPECT_EQ(load(server, "a").status, 202) << "already loaded";

  const json last_status = server.state_of(by_b);
  EXPECT_EQ(last_status["state"], "done");
  EXPECT_EQ(last_status["generated"], 3);
  EXPECT_EQ(last_status["model"], "b");
  EXPECT_EQ(server.del("/api/v1/generate/" + by_b).status, 202) << "has ended: no effect";
  const std::string by_c = run(server, "c", tokens({1, 2, 3}, 3));
  const json list = server.get("/api/v1/generate").body["generations"];
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0]["id"], json(by_c));
  EXPECT_EQ(list[1]["id"], json(by_a));
  EXPECT_EQ(list[2]["id"], json(by_b));
  for (const json& row : list)
    EXPECT_EQ(row["text"], server.state_of(row["id"].get<std::string>())["text"]);
  // Recorded sessions do not depend on loaded models.
  EXPECT_EQ(server.get("/api/v1/sessions/" + by_b).body["state"], "done");
}

TEST_F(Models, BusyModelIsNotUnloaded) {
  const TempFolder folder;
  copy_model(folder.path(), "a", "small", 8);
  copy_model(folder.path(), "b", "small");
  TestServer server(of(folder));
  ASSERT_TRUE(load_and_wait(server, "a"));
  const std::string first = server.generate(kLongRequest);
  const std::string second = server.generate(kLongRequest);
  const auto busy = [](const TestResponse& answer) {
    EXPECT_EQ(answer.status, 409);
    EXPECT_EQ(answer.body["code"], "model_busy") << answer.body;
  };
  busy(load(server, "b"));
  busy(unload(server, "a"));
  server.del("/api/v1/generate/" + first);
  server.wait_for_end(first);
  busy(unload(server, "a"));  // the second request is queued or running
  server.del("/api/v1/generate/" + second);
  server.wait_for_end(second);
  EXPECT_EQ(unload(server, "a").status, 202);
  EXPECT_TRUE(reaches_state(server, "a", "available"));
  EXPECT_EQ(unload(server, "a").status, 202) << "repeated: no effect";
  EXPECT_EQ(server.state_of(first)["state"], "cancelled");
  ASSERT_TRUE(load_and_wait(server, "b"));
}

TEST_F(Models, TwoLoadedModelsRunConcurrently) {
  const TempFolder folder;
  copy_model(folder.path(), "a", "small", 8);
  copy_model(folder.path(), "b", "mamba", 8);
  TestServer server(of(folder, 2));
  ASSERT_TRUE(load_and_wait(server, "a"));
  ASSERT_TRUE(load_and_wait(server, "b"));
  LiveClient live(server.port);
  live.send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", json::array()}});
  json body = kLongRequest;
  body["model"] = "a";
  const std::string by_a = server.generate(body);
  body["model"] = "b";
  const std::string by_b = server.generate(body);
  EXPECT_TRUE(wait_until([&] {
    return server.state_of(by_a)["state"] == "running" &&
           server.state_of(by_b)["state"] == "running";
  }));
  server.del("/api/v1/generate/" + by_a);
  server.del("/api/v1/generate/" + by_b);
  std::set<std::string> ended;
  while (ended.size() < 2) {
    const json event = live.read_event();
    ASSERT_FALSE(event.is_null());
    if (event["type"] == "state" && event["state"] == "cancelled") ended.insert(event["session"]);
  }
  EXPECT_EQ(ended, (std::set<std::string>{by_a, by_b}));
}

// The check in a child process is part of loading and can be cancelled, too.
TEST_F(Models, UnloadingCancelsLoading) {
  const TempFolder folder, tools;
  copy_model(folder.path(), "a", "small");
  copy_model(folder.path(), "b", "small");
  const fs::path slow = tools.path() / "slow-worker";
  std::ofstream(slow) << "#!/bin/sh\nexec sleep 1000\n";
  fs::permissions(slow, fs::perms::owner_all);
  TestServerOptions options = of(folder);
  options.worker = slow;
  options.check_models = true;
  TestServer server(options);
  ASSERT_EQ(load(server, "a").status, 202);
  EXPECT_EQ(entry(server, "a")["state"], "loading");
  EXPECT_EQ(server.get("/api/v1/health").body["status"], "loading");
  EXPECT_EQ(load(server, "a").status, 202) << "already loading";
  json body = tokens({1}, 1);
  const TestResponse early = server.post("/api/v1/generate", body.dump());
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(early.body["code"], "model_loading");
  const TestResponse other = load(server, "b");
  EXPECT_EQ(other.status, 409) << "a loading model is not idle";
  EXPECT_EQ(other.body["code"], "model_busy");

  EXPECT_EQ(unload(server, "a").status, 202);
  EXPECT_TRUE(reaches_state(server, "a", "available"));
  EXPECT_TRUE(entry(server, "a")["error"].is_null());
  // Loads and unloads in rapid succession.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(load(server, i % 2 == 0 ? "a" : "b").status, 202);
    EXPECT_EQ(unload(server, i % 2 == 0 ? "a" : "b").status, 202);
  }
  EXPECT_TRUE(reaches_state(server, "a", "available"));
  EXPECT_TRUE(reaches_state(server, "b", "available"));
}

TEST_F(Models, FailedLoadReportsErrorAndCanBeRetried) {
  const TempFolder folder;
  copy_model(folder.path(), "good", "small");
  {
    // A valid GGUF file without a key that llama.cpp needs.
    std::ifstream in(model_files("small").front(), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    const std::size_t at = bytes.find("llama.block_count");
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, 5, "alpac");
    std::ofstream(folder.path() / "unsupported.gguf", std::ios::binary) << bytes;
  }
  TestServerOptions options = of(folder);
  options.check_models = true;
  TestServer server(options);
  EXPECT_EQ(entry(server, "unsupported")["state"], "available") << "its header is valid";
  ASSERT_EQ(load(server, "unsupported").status, 202);
  EXPECT_TRUE(wait_until([&] { return entry(server, "unsupported")["state"] == "failed"; }));
  EXPECT_NE(entry(server, "unsupported")["error"].get<std::string>().find("unsupported.gguf"),
            std::string::npos);
  EXPECT_EQ(server.get("/api/v1/health").body["model_state"], "failed");
  const TestResponse rejected = server.post("/api/v1/generate", tokens({1}, 1).dump());
  EXPECT_EQ(rejected.status, 422);
  EXPECT_EQ(rejected.body["code"], "model_failed");
  // A failed model does not count as loaded.
  ASSERT_TRUE(load_and_wait(server, "good"));
  EXPECT_EQ(server.get("/api/v1/health").body["model_state"], "loaded");
  // After the file is fixed, it loads.
  copy_model(folder.path(), "unsupported", "small");
  ASSERT_TRUE(load_and_wait(server, "unsupported"));
  EXPECT_TRUE(reaches_state(server, "good", "available"));
}

TEST_F(Models, ChangedModelFileIsDetected) {
  struct Case {
    const char* name;
    std::function<void(const fs::path&)> change;
    bool can_load;
  };
  const Case cases[] = {
      {"removed", [](const fs::path& path) { fs::remove(path); }, false},
      {"truncated", [](const fs::path& path) { fs::resize_file(path, 4096); }, false},
      {"replaced",
       [](const fs::path& path) {
         fs::copy_file(model_files("small").front(), path.string() + ".new");
         fs::rename(path.string() + ".new", path);
       },
       true},
      {"touched",
       [](const fs::path& path) {
         fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
       },
       true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TempFolder folder;
    const fs::path path = copy_model(folder.path(), "a", "small");
    TestServer server(of(folder));
    ASSERT_TRUE(load_and_wait(server, "a"));
    const std::string before = run(server, "", tokens({1, 2, 3}, 3));
    c.change(path);
    EXPECT_FALSE(entry(server, "a")["warning"].is_null());
    const TestResponse rejected = server.post("/api/v1/generate", tokens({1}, 1).dump());
    EXPECT_EQ(rejected.status, 409);
    EXPECT_EQ(rejected.body["code"], "model_changed") << rejected.body;
    EXPECT_NE(rejected.body["detail"].get<std::string>().find("Load it again"), std::string::npos);
    // It is unloaded, and says why until it is loaded again.
    ASSERT_TRUE(reaches_state(server, "a", "failed"));
    EXPECT_TRUE(entry(server, "a")["error"].get<std::string>().contains("since it was loaded"));
    const TestResponse next = server.post("/api/v1/generate", tokens({1}, 1).dump());
    EXPECT_EQ(next.status, 503);
    EXPECT_TRUE(next.body["detail"].get<std::string>().contains("Load it again")) << next.body;
    const TestResponse again = load(server, "a");
    EXPECT_EQ(again.status == 202, c.can_load) << again.body;
    if (!c.can_load) {
      // A file that is gone is no model of the folder any more once it is unloaded.
      const std::string code = again.body["code"];
      EXPECT_TRUE(code == "model_failed" || (code == "not_found" && !fs::exists(path)))
          << again.body;
      copy_model(folder.path(), "a", "small");
      EXPECT_EQ(load(server, "a").status, 202);
    }
    ASSERT_TRUE(reaches_state(server, "a", "loaded"));
    EXPECT_TRUE(entry(server, "a")["warning"].is_null());
    run(server, "", tokens({1, 2, 3}, 3));
    EXPECT_EQ(server.state_of(before)["state"], "done");
  }
}

// A request that was queued while the file changed must not run with the old model.
TEST_F(Models, QueuedRequestFailsWhenModelFileChanges) {
  const TempFolder folder;
  const fs::path path = copy_model(folder.path(), "a", "small", 8);
  TestServer server(of(folder));
  ASSERT_TRUE(load_and_wait(server, "a"));
  const std::string first = server.generate(kLongRequest);
  const std::string second = server.generate(tokens({1, 2}, 2));
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
  server.del("/api/v1/generate/" + first);
  const json ended = server.wait_for_end(second);
  EXPECT_EQ(ended["state"], "failed");
  EXPECT_NE(ended["error"].get<std::string>().find("Load it again"), std::string::npos) << ended;
  EXPECT_EQ(server.get("/api/v1/sessions/" + second).status, 404) << "it never ran";
}

TEST_F(Models, TwentyModelSwapsLeakNothing) {
  const TempFolder folder;
  const std::vector<std::string> shapes = {"small", "moe", "mamba", "t5", "bert"};
  for (const std::string& shape : shapes) copy_model(folder.path(), shape, shape);
  TestServer server(of(folder));
  const auto round = [&](const std::string& model) {
    ASSERT_TRUE(load_and_wait(server, model));
    const std::string id = server.generate(tokens({1, 2, 3, 4}, model == "bert" ? 0 : 3));
    const json ended = server.wait_for_end(id);
    EXPECT_EQ(ended["state"], "done") << ended;
    EXPECT_EQ(server.get("/api/v1/sessions/" + id).body["n_layers"], 2);
  };
  const auto settle = [&] {
    for (const std::string& shape : shapes) {
      unload(server, shape);
      ASSERT_TRUE(reaches_state(server, shape, "available"));
    }
  };
  for (const std::string& shape : shapes) round(shape);  // llama.cpp allocates some data once
  settle();
  const std::size_t threads = count_threads(), files = count_open_files();
  const double megabytes = anonymous_megabytes();
  for (int i = 0; i < 20; ++i) round(shapes[static_cast<std::size_t>(i) % shapes.size()]);
  settle();
  // Closing connections takes some time.
  EXPECT_TRUE(wait_until([&] { return count_threads() <= threads && count_open_files() <= files; }))
      << count_threads() << " threads were " << threads << ", " << count_open_files()
      << " files were " << files;
  EXPECT_LT(anonymous_megabytes(), megabytes + 10) << "memory of unloaded models was not returned";
  EXPECT_EQ(server.get("/api/v1/generate").body["generations"].size(), 25U);
}

TEST_F(Models, CommandLineModelCanBeOutsideTheFolder) {
  const TempFolder folder, elsewhere;
  copy_model(folder.path(), "in", "small");
  const fs::path out = copy_model(elsewhere.path(), "out", "small");
  TestServer server({.model = out, .models = folder.path()});
  ASSERT_TRUE(server.wait_until_loaded());
  EXPECT_EQ(entry(server, "out")["state"], "loaded");
  EXPECT_EQ(entry(server, "out")["path"], json(out.string()));
  ASSERT_TRUE(load_and_wait(server, "in"));
  EXPECT_TRUE(reaches_state(server, "out", "available"));
  ASSERT_TRUE(load_and_wait(server, "out"));
  server.stop();

  // A model that is also in the folder is listed once.
  TestServer both({.model = folder.path() / "." / "in.gguf", .models = folder.path()});
  ASSERT_TRUE(both.wait_until_loaded());
  EXPECT_EQ(both.get("/api/v1/models").body["models"].size(), 1U);
}

}  // namespace
}  // namespace tt::test
