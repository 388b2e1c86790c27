// Session files over HTTP: downloads, ranges, downloads of running sessions, and imports of
// valid and invalid files.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>

#include "tests/server/support/recorded_sessions.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_edit.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

class SessionFile : public ::testing::Test {
 protected:
  SessionFile() { ensure_backends_loaded(); }
};

std::string file_path(const std::string& id) { return "/api/v1/sessions/" + id + "/file"; }

TEST_F(SessionFile, DownloadIsValidSqliteDatabase) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const auto file = server.client().Get(file_path(id));
  ASSERT_TRUE(file && file->status == 200);
  EXPECT_EQ(file->body, read_bytes(server.data / (id + ".ttrace")));
  EXPECT_EQ(file->get_header_value("Content-Type"), "application/vnd.sqlite3");
  EXPECT_EQ(file->get_header_value("Content-Disposition"),
            "attachment; filename=\"" + id + ".ttrace\"");
  const TempFolder folder;
  const fs::path copy = folder / "copy.ttrace";
  write_bytes(copy, file->body);
  EXPECT_EQ(run_sqlite3(copy, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(run_sqlite3(copy, "SELECT count(*) FROM tt_step"),
            std::to_string(server.get("/api/v1/sessions/" + id).body["steps"].get<int>()));
  EXPECT_EQ(run_sqlite3(copy, "SELECT value FROM tt_meta WHERE key='id'"), id);

  const auto head = server.client().Head(file_path(id));
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->get_header_value("Content-Length"), std::to_string(file->body.size()));
  EXPECT_EQ(head->get_header_value("Accept-Ranges"), "bytes");
  EXPECT_EQ(server.get(file_path("none")).status, 404);
}

TEST_F(SessionFile, SupportsRangeRequests) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const std::string whole = download(server, id);
  const std::size_t size = whole.size();
  const auto n = [](std::size_t v) { return std::to_string(v); };
  struct Case {
    std::string range;
    int status;
    std::string bytes, content_range;
  };
  const Case cases[] = {
      {"bytes=0-0", 206, whole.substr(0, 1), "bytes 0-0/" + n(size)},
      {"bytes=100-4095", 206, whole.substr(100, 3996), "bytes 100-4095/" + n(size)},
      {"bytes=-100", 206, whole.substr(size - 100),
       "bytes " + n(size - 100) + "-" + n(size - 1) + "/" + n(size)},
      {"bytes=5000-", 206, whole.substr(5000), "bytes 5000-" + n(size - 1) + "/" + n(size)},
      {"bytes=10-99999999999", 206, whole.substr(10), "bytes 10-" + n(size - 1) + "/" + n(size)},
      {"bytes=" + n(size) + "-", 416, "", "bytes */" + n(size)},
      {"bytes=0-1,5-6", 200, whole, ""},  // multiple ranges may be ignored, and are
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.range);
    const auto part = server.client().Get(file_path(id), {{"Range", c.range}});
    ASSERT_TRUE(static_cast<bool>(part));
    EXPECT_EQ(part->status, c.status);
    EXPECT_EQ(part->get_header_value("Content-Range"), c.content_range);
    if (c.status != 416) {
      EXPECT_EQ(part->body, c.bytes);
    }
  }
  const std::string etag = server.client().Head(file_path(id))->get_header_value("ETag");
  const auto same =
      server.client().Get(file_path(id), {{"Range", "bytes=0-9"}, {"If-Range", etag}});
  EXPECT_EQ(same->body, whole.substr(0, 10));
  const auto other =
      server.client().Get(file_path(id), {{"Range", "bytes=0-9"}, {"If-Range", "\"other\""}});
  EXPECT_EQ(other->status, 200);
  EXPECT_EQ(other->body, whole);
  std::string joined;
  for (std::size_t at = 0; at < size; at += 7777) {
    joined += server.client()
                  .Get(file_path(id), {{"Range", "bytes=" + n(at) + "-" + n(at + 7776)}})
                  ->body;
  }
  EXPECT_EQ(joined, whole);
  // JSON responses ignore Range headers.
  for (const char* range : {"bytes=0-3", "bytes=99999999-", "bytes=5-1", "lines=1"}) {
    const auto answer =
        server.client().Get("/api/v1/sessions/" + id, {{"Range", std::string(range)}});
    EXPECT_EQ(answer->status, 200) << range;
    EXPECT_EQ(json::parse(answer->body)["id"], id);
  }
}

TEST_F(SessionFile, RunningSessionDownloadIsSnapshot) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = start_long_request(server);
  const TempFolder folder;
  std::uint32_t last = 0;
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const auto file = server.client().Get(file_path(id));
    ASSERT_TRUE(file && file->status == 200);
    EXPECT_EQ(file->get_header_value("Cache-Control"), "no-store");
    EXPECT_FALSE(file->has_header("ETag"));
    const fs::path copy = folder.path() / (std::to_string(i) + ".ttrace");
    write_bytes(copy, file->body);
    EXPECT_TRUE(check_session(copy)->empty());
    EXPECT_EQ(run_sqlite3(copy, "PRAGMA integrity_check"), "ok");
    const auto reader = SessionReader::open(copy);
    EXPECT_EQ(reader->info()->state, SessionState::Recovered);
    EXPECT_GE(reader->step_count().value(), std::max(last, 4u));
    last = reader->step_count().value();
  }
  EXPECT_EQ(server.client().Head(file_path(id))->status, 200);
  // The recording continues without losses.
  EXPECT_TRUE(wait_until(
      [&] { return server.get("/api/v1/sessions/" + id).body.value("steps", 0u) > last; }));
  cancel_and_wait(server, id);
  const json ended = server.get("/api/v1/sessions/" + id).body;
  EXPECT_EQ(ended["state"], "cancelled");
  EXPECT_EQ(ended["losses"]["steps_not_written"], 0);
  EXPECT_TRUE(check_session(server.data / (id + ".ttrace"))->empty());
  EXPECT_EQ(list_files(server.data), std::vector<std::string>{id + ".ttrace"});

  // A copy made during the recording can be imported as a separate session.
  const TestResponse taken = import_session(server, read_bytes(folder.path() / "0.ttrace"));
  EXPECT_EQ(taken.status, 201) << taken.body;
  EXPECT_EQ(taken.body["id"], id + "-2");
  EXPECT_EQ(taken.body["state"], "recovered");
}

// Reads the head of a response, then the body on demand.
class SlowDownload {
 public:
  SlowDownload(std::uint16_t port, const std::string& path) : socket_(port, 4096) {
    socket_.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    head_ = socket_.read_until("\r\n\r\n");
  }
  const std::string& head() const { return head_; }
  // Up to `most` bytes of the body.
  std::string read_body(std::size_t max_bytes) { return socket_.read(max_bytes); }

 private:
  RawClient socket_;
  std::string head_;
};

// Larger than the socket buffers, by unused pages.
std::string record_large(TestServer& server) {
  const std::string id = record(server);
  const fs::path file = server.data / (id + ".ttrace");
  EXPECT_EQ(run_sqlite3(file,
                        "CREATE TABLE filler(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                        "SELECT i+1 FROM n WHERE i<24) INSERT INTO filler SELECT "
                        "randomblob(1000000) FROM n; DROP TABLE filler;"),
            "");
  return id;
}

TEST_F(SessionFile, FileDeletedDuringDownloadIsSentCompletely) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record_large(server);
  const std::string whole = read_bytes(server.data / (id + ".ttrace"));
  SlowDownload slow(server.port, file_path(id));
  EXPECT_TRUE(slow.head().starts_with("HTTP/1.1 200")) << slow.head();
  ASSERT_EQ(server.del("/api/v1/sessions/" + id).status, 200);
  fs::remove_all(server.data / ".deleted");
  EXPECT_TRUE(list_files(server.data).empty());
  EXPECT_EQ(slow.read_body(whole.size()), whole);
}

TEST_F(SessionFile, FileChangedDuringDownloadAbortsTransfer) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record_large(server);
  const std::string whole = read_bytes(server.data / (id + ".ttrace"));
  {
    SlowDownload slow(server.port, file_path(id));
    ASSERT_EQ(server.patch("/api/v1/sessions/" + id, {{"title", "new"}}).status, 200);
    const std::string got = slow.read_body(whole.size());
    EXPECT_LT(got.size(), whole.size());
    EXPECT_EQ(got, whole.substr(0, got.size()));
  }
  SlowDownload slow(server.port, file_path(id));
  fs::resize_file(server.data / (id + ".ttrace"), 8192);
  EXPECT_LT(slow.read_body(whole.size()).size(), whole.size());
}

TEST_F(SessionFile, DownloadAndImportRoundTrip) {
  std::string bytes, id;
  std::map<std::string, json> before;
  {
    TestServer server;
    ASSERT_TRUE(server.wait_until_loaded());
    id = record(server);
    before = all_responses(server, id);
    bytes = download(server, id);
  }
  TestServer server;
  const TestResponse taken = import_session(server, bytes);
  EXPECT_EQ(taken.status, 201) << taken.body;
  EXPECT_EQ(taken.body, before[""]);
  EXPECT_EQ(all_responses(server, id), before);
  EXPECT_EQ(download(server, id), bytes);

  // Importing it again finds the existing session.
  const TestResponse again = import_session(server, bytes);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, before[""]);
  EXPECT_EQ(list_files(server.data), std::vector<std::string>{id + ".ttrace"});

  // A different session with the same id: both are kept.
  ASSERT_EQ(server.patch("/api/v1/sessions/" + id, {{"title", "here"}}).status, 200);
  for (const char* suffix : {"-2", "-3"}) {
    const auto sent = server.client().Post("/api/v1/sessions", bytes, "application/octet-stream");
    ASSERT_TRUE(sent && sent->status == 201);
    EXPECT_EQ(sent->get_header_value("Location"), "/api/v1/sessions/" + id + suffix);
    auto answers = all_responses(server, id + suffix);
    EXPECT_EQ(answers[""]["id"], id + suffix);
    answers[""]["id"] = id;
    EXPECT_EQ(answers, before);
    EXPECT_TRUE(check_session(server.data / (id + suffix + ".ttrace"))->empty());
    EXPECT_EQ(run_sqlite3(server.data / (id + suffix + ".ttrace"),
                          "SELECT value FROM tt_meta WHERE key='id'"),
              id + suffix);
  }
  EXPECT_EQ(server.get("/api/v1/sessions/" + id).body["title"], "here");
}

TEST_F(SessionFile, ImportHasItsOwnBodyLimit) {
  TestServer from;
  ASSERT_TRUE(from.wait_until_loaded());
  const std::string bytes = download(from, record_large(from));
  ASSERT_GT(bytes.size(), 20u << 20);
  TestServer to;
  const TestResponse taken = import_session(to, bytes);
  EXPECT_EQ(taken.status, 201) << taken.body;
  EXPECT_EQ(taken.body["file_bytes"], bytes.size());

  ServerOptions options;
  options.max_import = 1u << 20;
  TestServer small({.frontend = frontend_options(options)});
  const TestResponse rejected = import_session(small, bytes);
  EXPECT_EQ(rejected.status, 413) << rejected.body;
  EXPECT_EQ(rejected.body["code"], "body_too_large");
  EXPECT_TRUE(session_ids(small).empty());
}

// Protects against decompression bombs.
TEST_F(SessionFile, ContentEncodingOfRequestIsNotDecoded) {
  TestServer server;
  const std::string packed("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00", 14);
  const httplib::Headers gzip = {{"Content-Encoding", "gzip"}};
  const auto generate = server.client().Post("/api/v1/generate", gzip, packed, "application/json");
  ASSERT_TRUE(static_cast<bool>(generate));
  EXPECT_EQ(json::parse(generate->body)["code"], "bad_json") << generate->body;
  const auto taken =
      server.client().Post("/api/v1/sessions", gzip, packed, "application/octet-stream");
  ASSERT_TRUE(static_cast<bool>(taken));
  EXPECT_EQ(json::parse(taken->body)["code"], "not_a_session") << taken->body;
}

TEST_F(SessionFile, InvalidFileIsRejectedAndLeavesNoFiles) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const std::string whole = download(server, id);
  const auto changed = [&](std::size_t at, char value) {
    std::string bytes = whole;
    bytes[at] = value;
    return bytes;
  };
  std::string scrambled = whole;
  for (std::size_t i = whole.size() / 2; i < whole.size(); i += 97) scrambled[i] ^= 0x55;
  struct Case {
    const char* name;
    std::string bytes;
    const char* code;
  };
  const Case cases[] = {
      {"empty", "", "not_a_session"},
      {"text", "hello", "not_a_session"},
      {"another database", changed(68, 0), "not_a_session"},
      {"newer version", changed(63, 9), "newer_version"},
      {"a header alone", whole.substr(0, 100), "session_damaged"},
      {"a page", whole.substr(0, 4096), "session_damaged"},
      {"half", whole.substr(0, whole.size() / 2), "session_damaged"},
      {"all but a page", whole.substr(0, whole.size() - 4096), "session_damaged"},
      {"all but a byte", whole.substr(0, whole.size() - 1), "session_damaged"},
      {"flipped bits", scrambled, "session_damaged"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TestResponse rejected = import_session(server, c.bytes);
    EXPECT_EQ(rejected.status, 422) << rejected.body;
    EXPECT_EQ(rejected.body["code"], c.code) << rejected.body;
    EXPECT_EQ(rejected.body["status"], 422);
    // The error does not reveal the path.
    EXPECT_EQ(rejected.body["detail"].get<std::string>().find(server.data.string()),
              std::string::npos)
        << rejected.body["detail"];
    EXPECT_EQ(list_files(server.data), std::vector<std::string>{id + ".ttrace"});
  }
  EXPECT_EQ(server.get("/api/v1/server").body["data_bytes"], whole.size());
}

// The CSV columns that must survive a round trip through a log, by line.
std::vector<std::string> importable_columns(const std::string& csv) {
  std::vector<std::string> lines;
  std::vector<bool> kept;
  std::istringstream text(csv);
  for (std::string line; std::getline(text, line);) {
    std::istringstream fields(line);
    std::string field, out;
    for (std::size_t i = 0; std::getline(fields, field, ','); ++i) {
      if (lines.empty()) {
        static const std::vector<std::string> kNames = {
            "step",        "timestamp_ns", "duration_ns", "token_id",   "phase",    "write",
            "tensor_name", "tensor_ptr",   "file_offset", "file_bytes", "layer_id", "size_bytes"};
        kept.push_back(std::ranges::contains(kNames, field));
      }
      if (i < kept.size() && kept[i]) out += field + ",";
    }
    lines.push_back(out);
  }
  return lines;
}

TEST_F(SessionFile, ImportsNdjsonLog) {
  std::string log, csv, id;
  json tokens;
  const auto exported = [](TestServer& server, const std::string& of, const char* format) {
    const auto sent = server.client().Get("/api/v1/sessions/" + of + "/export?format=" + format);
    EXPECT_TRUE(sent && sent->status == 200);
    return sent ? sent->body : "";
  };
  {
    TestServer server;
    ASSERT_TRUE(server.wait_until_loaded());
    id = record(server);
    log = exported(server, id, "ndjson");
    csv = exported(server, id, "csv");
    tokens = server.get("/api/v1/sessions/" + id + "/tokens").body;
  }
  TestServer server;
  const auto send_log = [&](const std::string& lines, const std::string& type) {
    return server.post("/api/v1/sessions", lines, type);
  };
  const TestResponse taken = send_log(log, "application/x-ndjson");
  EXPECT_EQ(taken.status, 201) << taken.body;
  EXPECT_EQ(taken.body["id"], id);
  EXPECT_EQ(taken.body["state"], "done");
  EXPECT_EQ(server.get("/api/v1/sessions/" + id + "/tokens").body, tokens);
  const auto rows = importable_columns(exported(server, id, "csv"));
  EXPECT_GT(rows.size(), 1000U);
  EXPECT_EQ(rows, importable_columns(csv));
  EXPECT_TRUE(check_session(server.data / (id + ".ttrace"))->empty());
  // Half a log becomes a partial session. The media type is case-insensitive and may have a
  // charset.
  const std::string half = log.substr(0, log.rfind('\n', log.size() / 2) + 1);
  const TestResponse broken_off = send_log(half, "Application/X-NDJSON; charset=utf-8");
  EXPECT_EQ(broken_off.status, 201) << broken_off.body;
  EXPECT_EQ(broken_off.body["id"], id + "-2");
  EXPECT_EQ(broken_off.body["state"], "recovered");
  const std::vector<std::string> both = list_files(server.data);
  for (const std::string& bad : {std::string(), std::string("hello\n"), half + "{\n"}) {
    const TestResponse rejected = send_log(bad, "application/x-ndjson");
    EXPECT_EQ(rejected.status, 422) << rejected.body;
    EXPECT_EQ(rejected.body["code"], "session_damaged");
    EXPECT_FALSE(rejected.body["detail"].get<std::string>().contains(server.data.string()))
        << rejected.body["detail"];
    EXPECT_EQ(list_files(server.data), both);
  }
}

TEST_F(SessionFile, AbortedUploadLeavesNoFiles) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const std::string whole = download(server, id);
  {
    RawClient client(server.port);
    client.send(
        "POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: " +
        std::to_string(whole.size()) + "\r\n\r\n" + whole.substr(0, whole.size() / 2));
    EXPECT_TRUE(wait_until([&] { return list_files(server.data).size() == 2; }));
  }
  EXPECT_TRUE(wait_until([&] { return list_files(server.data).size() == 1; }));
  EXPECT_EQ(session_ids(server).size(), 1u);
}

TEST_F(SessionFile, InvalidIdsAreReplaced) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const TempFolder folder;
  const fs::path copy = folder / "copy.ttrace";
  fs::copy_file(server.data / (id + ".ttrace"), copy);
  // A crafted file: the checksum of the row is valid.
  const auto adopt = [&](const std::string& wanted) {
    ASSERT_TRUE(assign_session_id(copy, wanted).has_value());
    const TestResponse taken = import_session(server, read_bytes(copy));
    EXPECT_EQ(taken.status, 201) << taken.body;
    EXPECT_TRUE(is_session_id(taken.body["id"].get<std::string>())) << taken.body["id"];
    EXPECT_TRUE(fs::exists(server.data / (taken.body["id"].get<std::string>() + ".ttrace")));
  };
  for (const char* wanted : {"../../escape", "/etc/passwd", ".hidden", "a b", "x/../y"})
    adopt(wanted);
  adopt(std::string(300, 'x'));
  EXPECT_EQ(session_ids(server).size(), 7u);
  EXPECT_EQ(list_files(server.data).size(), 7u);
}

}  // namespace
}  // namespace tt::test
