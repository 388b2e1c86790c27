// The HTTP API, tested through an HTTP client.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "api/json/version.h"
#include "tests/server/support/test_server.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

class Server : public ::testing::Test {
 protected:
  Server() { ensure_backends_loaded(); }
};

const json kShort = {{"prompt", "The sea"},
                     {"max_tokens", 6},
                     {"temperature", 0},
                     {"ignore_eos", true},
                     {"seed", 1}};
const json kLongRequest = {{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}};

TEST_F(Server, RespondsWhileModelIsLoading) {
  TestServer server;
  const TestResponse first = server.get("/api/v1/health");
  EXPECT_EQ(first.status, 200);
  EXPECT_TRUE(first.body["status"] == "loading" || first.body["status"] == "ok");
  ASSERT_TRUE(server.wait_until_loaded());
  const json health = server.get("/api/v1/health").body;
  EXPECT_EQ(health["status"], "ok");
  EXPECT_EQ(health["version"], kVersion);
  EXPECT_EQ(health["model"], "pocket");
  EXPECT_EQ(health["load_progress"], 1);
  const json model = server.get("/api/v1/models").body["models"].at(0);
  EXPECT_EQ(model["state"], "loaded");
  EXPECT_EQ(model["architecture"], "llama");
  EXPECT_EQ(model["n_layers"], 6);
  EXPECT_EQ(model["context"], 1024);
  EXPECT_TRUE(model["has_vocabulary"]);
  EXPECT_EQ(model["size_bytes"], std::filesystem::file_size(kTestPaths.bundled_model));
}

TEST_F(Server, GeneratesAndRecords) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const TestResponse accepted = server.post("/api/v1/generate", kShort.dump());
  ASSERT_EQ(accepted.status, 202) << accepted.body;
  const std::string id = accepted.body["id"];
  const json ended = server.wait_for_end(id);
  EXPECT_EQ(ended["state"], "done");
  EXPECT_EQ(ended["stop_reason"], "length");
  EXPECT_EQ(ended["generated"], 6);
  EXPECT_TRUE(ended["error"].is_null());
  EXPECT_FALSE(ended["text"].get<std::string>().empty());

  const json session = server.get("/api/v1/sessions/" + id).body;
  EXPECT_EQ(session["state"], "done");
  EXPECT_EQ(session["title"], "The sea");
  EXPECT_EQ(session["n_layers"], 6);
  EXPECT_EQ(session["model"]["path"], kTestPaths.bundled_model);
  EXPECT_EQ(session["facts"]["model.architecture"], "llama");
  EXPECT_GT(session["file_bytes"], 10'000);

  const json tokens = server.get("/api/v1/sessions/" + id + "/tokens").body;
  EXPECT_EQ(tokens["total"], session["tokens"]);
  std::string text;
  for (const json& token : tokens["tokens"])
    if (token["generated"]) text += token["text"];
  EXPECT_EQ(text, ended["text"].get<std::string>());
  EXPECT_EQ(tokens["tokens"].at(1)["index"], 1);

  const json steps = server.get("/api/v1/sessions/" + id + "/steps").body;
  EXPECT_EQ(steps["total"], session["steps"]);
  EXPECT_EQ(steps["steps"].at(0)["phase"], "prompt");
  EXPECT_EQ(steps["steps"].at(1)["phase"], "generate");
  EXPECT_EQ(steps["steps"].at(1)["layers"]["ns"].size(), 7u);
}

TEST_F(Server, OpAndAccessTotalsMatchStep) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate(kShort);
  ASSERT_EQ(server.wait_for_end(id)["state"], "done");
  const std::string path = "/api/v1/sessions/" + id + "/steps";
  int looked_at = 0;
  for (const json& step : server.get(path).body["steps"]) {
    if (step["dropped"]) continue;  // counted in losses: the disk was too slow
    ++looked_at;
    const std::string of_step = path + "/" + std::to_string(step["step"].get<int>());
    const json ops = server.get(of_step + "/ops").body;
    EXPECT_EQ(ops["total"], step["ops_timed"]);
    std::uint64_t read = 0, written = 0;
    std::int64_t ns = 0, end = -1;
    for (const json& op : ops["ops"]) {
      read += op["bytes_read"].get<std::uint64_t>();
      written += op["bytes_written"].get<std::uint64_t>();
      ns += op["duration_ns"].get<std::int64_t>();
      if (end >= 0) {
        EXPECT_EQ(op["timestamp_ns"], end);
      }
      end = op["timestamp_ns"].get<std::int64_t>() + op["duration_ns"].get<std::int64_t>();
    }
    EXPECT_EQ(read, step["bytes_read"]);
    EXPECT_EQ(written, step["bytes_written"]);
    std::int64_t by_layer = 0;
    for (const json& layer : step["layers"]["ns"]) by_layer += layer.get<std::int64_t>();
    EXPECT_EQ(ns, by_layer);

    const json accesses = server.get(of_step + "/accesses").body;
    EXPECT_EQ(accesses["total"], step["accesses"]);
    std::uint64_t touched = 0;
    for (const json& access : accesses["accesses"]) {
      touched += access["size_bytes"].get<std::uint64_t>();
      if (access["tensor_kind"] == "weight" && access["memory_source"] == "disk") {
        EXPECT_FALSE(access["file_offset"].is_null()) << access;
      }
    }
    EXPECT_EQ(touched, read + written);
    const json of_op = server.get(of_step + "/accesses?op=3").body;
    EXPECT_GT(of_op["total"], 0);
    for (const json& access : of_op["accesses"]) EXPECT_EQ(access["op"], 3);
  }
  EXPECT_GT(looked_at, 0);
}

TEST_F(Server, ConcatenatedPagesEqualFullList) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate(kShort);
  ASSERT_EQ(server.wait_for_end(id)["state"], "done");
  const std::string base = "/api/v1/sessions/" + id;
  for (const auto& [path, rows] : {std::pair<std::string, std::string>{"/tokens", "tokens"},
                                   {"/steps", "steps"},
                                   {"/steps/0/ops", "ops"},
                                   {"/steps/0/accesses", "accesses"}}) {
    SCOPED_TRACE(path);
    const json whole = server.get(base + path + "?limit=10000").body;
    json joined = json::array();
    const std::size_t part = whole[rows].size() / 3 + 1;
    for (std::size_t from = 0; from <= whole[rows].size(); from += part) {
      const json page =
          server
              .get(base + path + "?from=" + std::to_string(from) + "&limit=" + std::to_string(part))
              .body;
      EXPECT_EQ(page["total"], whole["total"]);
      for (const json& row : page[rows]) joined.push_back(row);
    }
    EXPECT_EQ(joined, whole[rows]);
    EXPECT_EQ(whole[rows].size(), whole["total"]);
  }
}

TEST_F(Server, RequestsAreQueuedInOrderAndCancellable) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string first = server.generate(kLongRequest);
  const std::string second = server.generate(kLongRequest);
  const std::string third = server.generate(kLongRequest);
  EXPECT_TRUE(wait_until([&] { return server.state_of(first)["generated"] > 2; }));
  EXPECT_EQ(server.state_of(first)["position"], 0);
  EXPECT_EQ(server.state_of(second)["position"], 1);
  const json waiting = server.state_of(third);
  EXPECT_EQ(waiting["state"], "queued");
  EXPECT_EQ(waiting["position"], 2);

  EXPECT_EQ(server.del("/api/v1/generate/" + second).status, 202);
  EXPECT_EQ(server.state_of(second)["state"], "cancelled");
  EXPECT_EQ(server.state_of(third)["position"], 1);
  EXPECT_EQ(server.del("/api/v1/generate/" + first).status, 202);
  const json ended = server.wait_for_end(first);
  EXPECT_EQ(ended["state"], "cancelled");
  EXPECT_EQ(ended["stop_reason"], "cancelled");
  EXPECT_EQ(server.del("/api/v1/generate/" + first).body["state"],
            "cancelled");  // repeated: no effect
  EXPECT_TRUE(wait_until([&] { return server.state_of(third)["state"] == "running"; }));
  server.del("/api/v1/generate/" + third);
  server.wait_for_end(third);
  EXPECT_EQ(server.get("/api/v1/sessions/" + first).body["state"], "cancelled");
}

TEST_F(Server, ListsSessionsNewestFirstIncludingRunning) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(server.generate(kShort));
    server.wait_for_end(ids.back());
  }
  ids.push_back(server.generate(kLongRequest));
  ASSERT_TRUE(
      wait_until([&] { return server.get("/api/v1/sessions/" + ids[3]).body["steps"] > 2; }));
  const json list = server.get("/api/v1/sessions").body;
  EXPECT_EQ(list["total"], 4);
  std::ranges::reverse(ids);  // newest first, also for sessions started in the same second
  std::vector<std::string> listed;
  for (const json& session : list["sessions"]) listed.push_back(session["id"]);
  EXPECT_EQ(listed, ids);
  const json page = server.get("/api/v1/sessions?from=1&limit=2").body;
  EXPECT_EQ(page["total"], 4);
  ASSERT_EQ(page["sessions"].size(), 2u);
  EXPECT_EQ(page["sessions"].at(0)["id"].get<std::string>(), ids[1]);
  int running = 0;
  for (const json& session : list["sessions"]) running += session["state"] == "running" ? 1 : 0;
  EXPECT_EQ(running, 1);
}

TEST_F(Server, ErrorResponsesAreProblemJson) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate(kShort);
  server.wait_for_end(id);
  struct Case {
    const char* method;
    std::string path, body;
    int status;
    const char* code;
  };
  const std::string session = "/api/v1/sessions/" + id;
  const Case cases[] = {
      {"POST", "/api/v1/generate", "{", 400, "bad_json"},
      {"POST", "/api/v1/generate", R"({"prompt": 7})", 400, "bad_request"},
      {"POST", "/api/v1/generate", R"({"prompt": "a", "colour": 7})", 400, "bad_request"},
      {"POST", "/api/v1/generate", R"({"prompt": ""})", 422, "bad_prompt"},
      {"POST", "/api/v1/generate", R"({"tokens": [999999]})", 422, "bad_prompt"},
      {"POST", "/api/v1/generate", R"({"prompt": "a", "grammar": "("})", 422, "bad_prompt"},
      {"POST", "/api/v1/generate", json{{"prompt", std::string(9000, 'a')}}.dump(), 413,
       "too_long"},
      {"GET", "/api/v1/generate/none", "", 404, "not_found"},
      {"DELETE", "/api/v1/generate/none", "", 404, "not_found"},
      {"GET", "/api/v1/sessions/none", "", 404, "not_found"},
      {"GET", "/api/v1/sessions/none/steps", "", 404, "not_found"},
      {"GET", "/api/v1/sessions/..%2f..%2fetc%2fpasswd", "", 404, "not_found"},
      {"GET", "/api/v1/sessions/%2e%2e/tokens", "", 404, "not_found"},
      {"GET", session + "/steps/99/ops", "", 404, "not_found"},
      {"GET", session + "/steps/x/ops", "", 404, "not_found"},
      {"GET", session + "/steps/-1/accesses", "", 404, "not_found"},
      {"GET", session + "/steps?from=-1", "", 400, "bad_request"},
      {"GET", session + "/steps?limit=10001", "", 400, "bad_request"},
      {"GET", session + "/steps?limit=1e3", "", 400, "bad_request"},
      {"GET", session + "/steps/0/accesses?op=x", "", 400, "bad_request"},
      {"GET", "/api/v1/sessions?from=99999999999999999999", "", 400, "bad_request"},
      {"GET", "/api/v1/nothing", "", 404, "not_found"},
      {"POST", "/api/v1/health", "", 405, "method_not_allowed"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.method) + " " + c.path + " " + c.body.substr(0, 60));
    const std::string method = c.method;
    const TestResponse answer = method == "GET"    ? server.get(c.path)
                                : method == "POST" ? server.post(c.path, c.body)
                                                   : server.del(c.path);
    EXPECT_EQ(answer.status, c.status);
    EXPECT_EQ(answer.type, "application/problem+json");
    ASSERT_TRUE(answer.body.is_object());
    EXPECT_EQ(answer.body["code"], c.code) << answer.body;
    EXPECT_EQ(answer.body["status"], c.status);
  }
}

// Paths of other servers, of which health checks read only the status.
TEST_F(Server, UnknownPathsAreNotThePage) {
  TestServer server;
  for (const char* path : {"/health", "/props", "/slots", "/v1/models", "/completion", "/anything",
                           "/sessions", "/docs", "/index", "/api", "/api/v1"}) {
    const auto answer = server.client().Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 404) << path;
    EXPECT_EQ(answer->get_header_value("Content-Type"), "application/problem+json") << path;
  }
  const auto login = server.client().Get("/login?code=1");
  EXPECT_EQ(login->status, 200) << "not needed without a key: the page";
  const auto health = server.client().Get("/health");
  EXPECT_TRUE(health->body.contains("Did you mean /api/v1/health?")) << health->body;
}

TEST_F(Server, KeepsServingWhenModelIsInvalid) {
  const TempFolder folder;
  struct Case {
    const char* name;
    std::string bytes;
  };
  std::ifstream bundled(kTestPaths.bundled_model, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(bundled), {});
  const Case cases[] = {{"not a GGUF", "hello"},
                        {"empty", ""},
                        {"half a header", whole.substr(0, 5000)},
                        {"half of the weights", whole.substr(0, whole.size() / 2)}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto model = folder.path() / "bad.gguf";
    std::ofstream(model, std::ios::binary) << c.bytes;
    TestServer server({.model = model, .check_models = true, .frontend = {}});
    EXPECT_FALSE(server.wait_until_loaded());
    const json entry = server.get("/api/v1/models").body["models"].at(0);
    EXPECT_EQ(entry["state"], "failed");
    EXPECT_NE(entry["error"].get<std::string>().find("bad.gguf"), std::string::npos)
        << entry["error"];
    EXPECT_EQ(server.get("/api/v1/health").body["model_state"], "failed");
    const TestResponse rejected = server.post("/api/v1/generate", kShort.dump());
    EXPECT_EQ(rejected.status, 422);
    EXPECT_EQ(rejected.body["code"], "model_failed");
    EXPECT_EQ(server.get("/api/v1/sessions").body["total"], 0);
  }
}

// cpp-httplib's brotli takes 70 ms for 50 KB.
TEST_F(Server, CompressesWithGzip) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate(kShort);
  ASSERT_EQ(server.wait_for_end(id)["state"], "done");
  httplib::Client client = server.client();
  client.set_decompress(false);
  const auto ops = client.Get("/api/v1/sessions/" + id + "/steps/0/ops",
                              {{"Accept-Encoding", "gzip, deflate, br, zstd"}});
  ASSERT_TRUE(static_cast<bool>(ops));
  EXPECT_EQ(ops->get_header_value("Content-Encoding"), "gzip");
  EXPECT_LT(ops->body.size(), 10'000u);
}

TEST_F(Server, ListsUnreadableFile) {
  TestServer server;
  std::ofstream(server.folder.path() / "20200101-000000-aaaaaa.ttrace") << "not a database";
  std::ofstream(server.folder.path() / "bad name.ttrace") << "not listed";
  std::ofstream(server.folder.path() / "notes.txt") << "not listed";
  const json list = server.get("/api/v1/sessions").body;
  ASSERT_EQ(list["total"], 1);
  EXPECT_EQ(list["sessions"].at(0)["state"], "unreadable");
  EXPECT_FALSE(list["sessions"].at(0)["error"].is_null());
  const TestResponse steps = server.get("/api/v1/sessions/20200101-000000-aaaaaa/steps");
  EXPECT_EQ(steps.status, 500);
  EXPECT_EQ(steps.type, "application/problem+json");
}

}  // namespace
}  // namespace tt::test
