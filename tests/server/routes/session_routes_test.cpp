// Sessions over HTTP: recorded with the bundled model, listed, renamed, deleted and restored.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ranges>
#include <set>

#include "api/json/version.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/support/test_paths.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

class Sessions : public ::testing::Test {
 protected:
  Sessions() { ensure_backends_loaded(); }
};

TEST_F(Sessions, AreSearchedFilteredSortedAndPaged) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string sea = record(server, "The sea is BLUE");
  const std::string ueber = record(server, "Über die Berge");
  const std::string zebra = record(server, "a zebra in the sea");
  write_bytes(server.data / "20200101-000000-aaaaaa.ttrace", "not a database");
  const std::string broken = "20200101-000000-aaaaaa";

  using Ids = std::vector<std::string>;
  const Ids all = {zebra, ueber, sea, broken};
  const auto some = [](Ids ids) { return ids; };
  struct Case {
    std::string query;
    Ids ids;
    std::size_t total;
  };
  const Case cases[] = {
      {"", all, 4},
      {"?sort=-start", all, 4},
      {"?sort=start", some({broken, sea, ueber, zebra}), 4},
      {"?sort=title", some({broken, zebra, sea, ueber}), 4},
      {"?sort=-title", some({ueber, sea, zebra, broken}), 4},
      {"?sort=model&limit=1", some({broken}), 4},
      {"?q=SEA", some({zebra, sea}), 2},
      {"?q=sea%20blue", some({sea}), 1},
      {"?q=%C3%9CBER", some({ueber}), 1},  // ÜBER
      {"?q=%C3%BCber", some({ueber}), 1},  // über
      {"?q=bundled%20zebra", some({}), 0},
      {"?q=20200101", some({broken}), 1},
      {"?q=" + sea, some({sea}), 1},
      {"?q=%20%20", all, 4},
      {"?q=%25", some({}), 0},
      {"?state=unreadable", some({broken}), 1},
      {"?state=done", some({zebra, ueber, sea}), 3},
      {"?state=running", some({}), 0},
      {"?state=done&q=sea&sort=start&limit=1", some({sea}), 2},
      {"?model=" + fs::path(kTestPaths.bundled_model).filename().string(),
       some({zebra, ueber, sea}), 3},
      {"?model=other.gguf", some({}), 0},
      {"?from=1&limit=2", some({ueber, sea}), 4},
      {"?from=4", some({}), 4},
      {"?limit=0", some({}), 4},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.query);
    const TestResponse answer = server.get("/api/v1/sessions" + c.query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.body["total"], c.total);
    EXPECT_EQ(session_ids(server, c.query), c.ids);
  }
  for (const char* key : {"steps", "tokens", "bytes"}) {
    SCOPED_TRACE(key);
    const char* field = std::string(key) == "bytes" ? "file_bytes" : key;
    std::int64_t last = -1;
    for (const json& session :
         server.get(std::string("/api/v1/sessions?sort=") + key).body["sessions"]) {
      const auto value = session.value(field, std::int64_t{0});
      EXPECT_GE(value, last);
      last = value;
    }
    EXPECT_GT(last, 0);
    Ids forth = session_ids(server, std::string("?sort=") + key);
    std::ranges::reverse(forth);
    EXPECT_EQ(session_ids(server, std::string("?sort=-") + key), forth);
  }
}

TEST_F(Sessions, RejectsInvalidParameters) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  std::string long_text;
  for (int i = 0; i < 201; ++i) long_text += "%C3%BC";
  for (const std::string& query :
       {std::string("?sort=colour"), std::string("?sort="), std::string("?state=ended"),
        std::string("?state="), std::string("?limit=10001"), std::string("?offset=1"),
        std::string("?limit=1&limit=2"), "?q=" + long_text, "?model=" + long_text}) {
    const TestResponse answer = server.get("/api/v1/sessions" + query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_EQ(answer.body["code"], "bad_request") << query;
    EXPECT_EQ(answer.type, "application/problem+json");
  }
  EXPECT_EQ(server.get("/api/v1/sessions?q=" + long_text.substr(6)).status, 200);
  EXPECT_EQ(server.get("/api/v1/sessions/" + id + "?x=1").status, 400);
  EXPECT_EQ(server.get("/api/v1/sessions/" + id + "/file?x=1").status, 400);
  EXPECT_EQ(server.get("/api/v1/server?x=1").status, 400);
  EXPECT_EQ(server.get("/api/v1/version?x=1").status, 400);
}

TEST_F(Sessions, TitleIsChangedInTheFile) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  auto before = all_responses(server, id);
  const std::string title = "Ein 'neuer' Titel \U0001F600";
  const TestResponse renamed = server.patch("/api/v1/sessions/" + id, {{"title", title}});
  EXPECT_EQ(renamed.status, 200) << renamed.body;
  EXPECT_EQ(renamed.body["title"], title);
  before[""]["title"] = title;
  EXPECT_EQ(all_responses(server, id), before);
  const fs::path file = server.data / (id + ".ttrace");
  EXPECT_EQ(run_sqlite3(file, "SELECT value FROM tt_meta WHERE key='title'"), title);
  EXPECT_EQ(run_sqlite3(file, "PRAGMA integrity_check"), "ok");
  EXPECT_TRUE(check_session(file)->empty());
  EXPECT_EQ(session_ids(server, "?q=titel").size(), 1u);

  EXPECT_EQ(server.patch("/api/v1/sessions/" + id, {{"title", ""}}).status, 400);
  EXPECT_EQ(server.patch("/api/v1/sessions/" + id, {{"name", "x"}}).status, 400);
  EXPECT_EQ(server.patch("/api/v1/sessions/none", {{"title", "x"}}).status, 404);
  EXPECT_EQ(server.get("/api/v1/sessions/" + id).body["title"], title);
}

TEST_F(Sessions, RunningSessionCannotBeChanged) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = start_long_request(server);
  for (const TestResponse& rejected : {server.patch("/api/v1/sessions/" + id, {{"title", "x"}}),
                                       server.del("/api/v1/sessions/" + id)}) {
    EXPECT_EQ(rejected.status, 409);
    EXPECT_EQ(rejected.body["code"], "session_running");
    EXPECT_NE(rejected.body["detail"].get<std::string>().find("/api/v1/generate/" + id),
              std::string::npos)
        << rejected.body["detail"];
  }
  const auto shown = server.client().Get("/api/v1/sessions/" + id);
  EXPECT_EQ(shown->get_header_value("Cache-Control"), "no-store");
  EXPECT_FALSE(shown->has_header("ETag"));
  cancel_and_wait(server, id);
  EXPECT_EQ(server.patch("/api/v1/sessions/" + id, {{"title", "x"}}).body["title"], "x");
  EXPECT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
}

TEST_F(Sessions, MatchingEtagReturns304) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const std::string other = record(server, "Other");
  const std::string base = "/api/v1/sessions/" + id;
  for (const std::string& path : {base, base + "/file"}) {
    SCOPED_TRACE(path);
    auto client = server.client();
    const auto first = client.Get(path);
    ASSERT_TRUE(first && first->status == 200);
    const std::string etag = first->get_header_value("ETag");
    ASSERT_FALSE(etag.empty());
    EXPECT_EQ(first->get_header_value("Cache-Control"), "private, no-cache");
    EXPECT_EQ(client.Head(path)->get_header_value("ETag"), etag);
    for (const bool head : {false, true}) {
      const httplib::Headers has = {{"If-None-Match", etag}};
      const auto again = head ? client.Head(path, has) : client.Get(path, has);
      EXPECT_EQ(again->status, 304);
      EXPECT_TRUE(again->body.empty());
      EXPECT_EQ(again->get_header_value("ETag"), etag);
    }
    EXPECT_EQ(client.Get(path, {{"If-None-Match", "\"other\""}})->status, 200);
  }
  const std::string before = server.client().Get(base)->get_header_value("ETag");
  std::set<std::string> tags = {before};
  // Also for rapid changes between titles of equal length.
  for (const char* title : {"a", "b", "c", "d"}) {
    ASSERT_EQ(server.patch(base, {{"title", title}}).status, 200);
    const auto now = server.client().Get(base, {{"If-None-Match", before}});
    EXPECT_EQ(now->status, 200);
    EXPECT_TRUE(tags.insert(now->get_header_value("ETag")).second);
  }
  EXPECT_NE(server.client().Get("/api/v1/sessions/" + other)->get_header_value("ETag"), before);
}

TEST_F(Sessions, DeletedSessionCanBeRestoredAfterRestart) {
  const TempFolder folder;
  std::string id;
  std::map<std::string, json> before;
  std::int64_t until = 0;
  {
    TestServer server({.data = folder.path()});
    ASSERT_TRUE(server.wait_until_loaded());
    id = record(server);
    before = all_responses(server, id);
    const TestResponse deleted = server.del("/api/v1/sessions/" + id);
    EXPECT_EQ(deleted.status, 200) << deleted.body;
    EXPECT_EQ(deleted.body["id"], id);
    until = deleted.body["restore_until_utc_ns"];
    EXPECT_NEAR(static_cast<double>(until - utc_now_ns()) / 1e9, 3600, 120);
    EXPECT_TRUE(session_ids(server).empty());
    for (const char* path : {"", "/tokens", "/steps/0/ops", "/file"})
      EXPECT_EQ(server.get("/api/v1/sessions/" + id + path).status, 404) << path;
    EXPECT_EQ(server.del("/api/v1/sessions/" + id).status, 404);
    server.retention.sweep();  // nothing has expired
  }
  {
    TestServer server({.data = folder.path()});
    server.retention.sweep();
    const TestResponse restored = server.post("/api/v1/sessions/" + id + "/restore", "");
    EXPECT_EQ(restored.status, 200) << restored.body;
    EXPECT_EQ(all_responses(server, id), before);
    const TestResponse again = server.post("/api/v1/sessions/" + id + "/restore", "");
    EXPECT_EQ(again.status, 404);
    EXPECT_NE(again.body["detail"].get<std::string>().find("is not deleted"), std::string::npos);
    ASSERT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
  }
  // After an hour it can no longer be restored, and the next sweep purges it.
  TestServer server(
      {.data = folder.path(), .now = [] { return utc_now_ns() + 3'700'000'000'000; }});
  EXPECT_EQ(server.post("/api/v1/sessions/" + id + "/restore", "").status, 404);
  EXPECT_EQ(list_files(folder.path()).size(), 1u);
  server.retention.sweep();
  EXPECT_EQ(server.removed, std::vector<std::string>{id});
  EXPECT_TRUE(list_files(folder.path()).empty());
}

TEST_F(Sessions, RestoreDoesNotOverwriteAnotherSession) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const std::string bytes = download(server, id);
  ASSERT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
  ASSERT_EQ(import_session(server, bytes).body["id"], id);
  ASSERT_EQ(server.patch("/api/v1/sessions/" + id, {{"title", "second"}}).status, 200);
  const TestResponse rejected = server.post("/api/v1/sessions/" + id + "/restore", "");
  EXPECT_EQ(rejected.status, 409);
  EXPECT_EQ(rejected.body["code"], "session_exists");
  EXPECT_EQ(server.get("/api/v1/sessions/" + id).body["title"], "second");
  // After two deletions, the latest one is restored first.
  ASSERT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
  ASSERT_EQ(server.post("/api/v1/sessions/" + id + "/restore", "").body["title"], "second");
  ASSERT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
}

TEST_F(Sessions, IdsAndLinksCannotEscapeTheFolder) {
  const TempFolder outside;
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const fs::path secret = outside / "secret.ttrace";
  fs::copy_file(server.data / (id + ".ttrace"), secret);
  const std::string before = read_bytes(secret);
  fs::create_symlink(secret, server.data / "link.ttrace");
  fs::create_symlink(outside.path(), server.data / "folder");
  fs::create_symlink(outside.path(), server.data / ".deleted");
  fs::create_symlink(outside.path(), server.data / ".work");
  EXPECT_EQ(session_ids(server), std::vector<std::string>{id});
  const std::string relative = "..%2f" + outside.path().filename().string() + "%2fsecret";
  for (const std::string& name :
       {std::string("link"), std::string("folder%2fsecret"), relative, std::string("%2e%2e"),
        std::string("..%00"), std::string("%2etmp")}) {
    const std::string path = "/api/v1/sessions/" + name;
    EXPECT_EQ(server.get(path).status, 404) << path;
    EXPECT_EQ(server.get(path + "/file").status, 404) << path;
    EXPECT_EQ(server.get(path + "/tokens").status, 404) << path;
    EXPECT_EQ(server.del(path).status, 404) << path;
    EXPECT_EQ(server.patch(path, {{"title", "x"}}).status, 404) << path;
    EXPECT_EQ(server.post(path + "/restore", "").status, 404) << path;
  }
  // Nothing is written through these links.
  EXPECT_EQ(server.del("/api/v1/sessions/" + id).status, 500);
  EXPECT_EQ(import_session(server, before).status, 500);
  EXPECT_EQ(session_ids(server), std::vector<std::string>{id});
  EXPECT_EQ(list_files(outside.path()), std::vector<std::string>{"secret.ttrace"});
  EXPECT_EQ(read_bytes(secret), before);
}

TEST_F(Sessions, ExternalFilesAreReadOnly) {
  const TempFolder elsewhere;
  fs::create_directory(elsewhere / "folder");
  std::string id;
  std::map<std::string, json> before;
  {
    TestServer server;
    ASSERT_TRUE(server.wait_until_loaded());
    id = record(server);
    before = all_responses(server, id);
    fs::copy_file(server.data / (id + ".ttrace"), elsewhere / "my run (1).ttrace");
    fs::copy_file(server.data / (id + ".ttrace"), elsewhere / "folder/b.ttrace");
    fs::copy_file(server.data / (id + ".ttrace"), elsewhere / "b.ttrace");
  }
  write_bytes(elsewhere / "folder/notes.txt", "not listed");
  const auto files = list_files(elsewhere.path());
  const std::string bytes = read_bytes(elsewhere / "b.ttrace");

  TestServer server(
      {.elsewhere = {elsewhere / "my run (1).ttrace", elsewhere / "b.ttrace", elsewhere / "folder",
                     elsewhere / "b.ttrace"},
       .retention = {.max_age = std::chrono::nanoseconds(1), .keep_bytes = 1, .disk_reserve = 0}});
  EXPECT_EQ(session_ids(server, "?sort=-start"),
            (std::vector<std::string>{"my-run--1-", "b-2", "b"}));
  for (const char* name : {"my-run--1-", "b", "b-2"}) {
    SCOPED_TRACE(name);
    auto answers = all_responses(server, name);
    answers[""]["id"] = id;
    EXPECT_EQ(answers, before);
    const std::string path = std::string("/api/v1/sessions/") + name;
    EXPECT_EQ(download(server, name), bytes);
    for (const TestResponse& rejected : {server.del(path), server.patch(path, {{"title", "x"}})}) {
      EXPECT_EQ(rejected.status, 409);
      EXPECT_EQ(rejected.body["code"], "session_elsewhere");
    }
  }
  server.retention.sweep();
  EXPECT_TRUE(server.removed.empty());
  EXPECT_EQ(list_files(elsewhere.path()), files);
  EXPECT_EQ(read_bytes(elsewhere / "b.ttrace"), bytes);
  // Added files are listed, removed ones are not.
  fs::rename(elsewhere / "folder/b.ttrace", elsewhere / "folder/c.ttrace");
  EXPECT_EQ(session_ids(server), (std::vector<std::string>{"my-run--1-", "c", "b"}));
}

TEST_F(Sessions, ReportsStorageAndVersions) {
  TestServer server({.retention = {.max_age = {}, .keep_bytes = 1u << 30, .disk_reserve = 0}});
  ASSERT_TRUE(server.wait_until_loaded());
  EXPECT_EQ(server.get("/api/v1/server").body["data_bytes"], 0);
  const std::string id = record(server);
  const json facts = server.get("/api/v1/server").body;
  EXPECT_EQ(facts["data_bytes"], server.get("/api/v1/sessions/" + id).body["file_bytes"]);
  EXPECT_EQ(facts["data_quota_bytes"], 1u << 30);
  EXPECT_EQ(facts["data_dir"], server.data.string());
  EXPECT_GT(facts["disk_free_bytes"], 0);
  EXPECT_GT(facts["memory_bytes"], 0);
  EXPECT_GT(facts["cores"], 0);
  EXPECT_NEAR(facts["start_utc_ns"].get<double>(), static_cast<double>(utc_now_ns()), 600e9);
  // Deleted sessions count until they are purged.
  ASSERT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
  EXPECT_EQ(server.get("/api/v1/server").body["data_bytes"], facts["data_bytes"]);

  const json version = server.get("/api/v1/version").body;
  EXPECT_EQ(version["api"], kApiVersion);
  EXPECT_EQ(version["trace_format"], kFormatVersion);
  EXPECT_EQ(version["live_protocol"], kLiveProtocol);
  EXPECT_NE(std::ranges::find(version["backends"], "CPU"), version["backends"].end());
}

}  // namespace
}  // namespace tt::test
