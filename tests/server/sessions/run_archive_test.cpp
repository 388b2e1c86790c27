// Folder exports over HTTP: archives that tar can unpack, with the same files that tt writes;
// and the import of run folders.
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/api/exchange/invalid_archives.h"
#include "tests/api/exchange/round_trip_check.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/support/command_output.h"
#include "tests/support/small_disk.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

class RunArchive : public ::testing::Test {
 protected:
  RunArchive() { ensure_backends_loaded(); }
};

httplib::Result get_export(TestServer& server, const std::string& id, const std::string& query) {
  return server.client().Get("/api/v1/sessions/" + id + "/export?" + query);
}
std::string archive_of(TestServer& server, const std::string& id,
                       const std::string& query = "format=folder") {
  const auto sent = get_export(server, id, query);
  EXPECT_TRUE(sent && sent->status == 200);
  return sent ? sent->body : "";
}
TestResponse send_archive(TestServer& server, const std::string& bytes,
                          const std::string& type = "application/x-tar") {
  return server.post("/api/v1/sessions", bytes, type);
}
// Unpacks the archive with tar into `folder`.
void unpack(const std::string& bytes, const fs::path& folder) {
  fs::create_directories(folder);
  write_bytes(folder / "s.tar", bytes);
  command_output("cd " + folder.string() + " && tar -xf s.tar && rm s.tar");
}
void expect_same_files(const fs::path& one, const fs::path& other) {
  EXPECT_EQ(command_output("diff -r " + one.string() + " " + other.string()), "");
}

TEST_F(RunArchive, MatchesFilesWrittenByTt) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const TempFolder folder;
  const std::string tt = "cd " + folder.path().string() + " && " + std::string(kTestPaths.tt) +
                         " export -q " + (server.data / (id + ".ttrace")).string();
  struct Case {
    const char* query;
    std::string options, below;  // `below`: the output folder of tt
  };
  const Case cases[] = {
      {"format=folder", "--format folder -o whole", "whole"},
      {"format=folder&first_step=1&last_step=2&per_head=true",
       "--format folder --from-step 1 --to-step 3 --per-head -o some", "some"},
      {"part_rows=1000", "--format parquet --part-rows 1000 -o lake", "lake"},
      {"format=arrow-file&part_rows=1000", "--format arrow-file --part-rows 1000 -o arrows",
       "arrows"},
      {"format=parquet&part_rows=1&last_step=2",
       "--format parquet --part-rows 1 --last-step 2 -o parts", "parts"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.query);
    const auto sent = get_export(server, id, c.query);
    ASSERT_TRUE(sent && sent->status == 200) << (sent ? sent->body : "no response");
    EXPECT_EQ(sent->get_header_value("Content-Type"), "application/x-tar");
    EXPECT_EQ(sent->get_header_value("Content-Disposition"),
              "attachment; filename=\"" + id + ".tar\"");
    EXPECT_FALSE(sent->get_header_value("ETag").empty());
    write_bytes(folder / "listed.tar", sent->body);
    std::istringstream names(command_output("tar -tf " + (folder / "listed.tar").string()));
    std::size_t files = 0;
    for (std::string name; std::getline(names, name); ++files)
      EXPECT_TRUE(name.starts_with(id + "/")) << name;
    EXPECT_GE(files, 6U);
    const fs::path out = folder.path() / ("out-" + c.below);
    unpack(sent->body, out);
    command_output(tt + " " + c.options);
    expect_same_files(out / id, folder.path() / c.below);
    EXPECT_EQ(archive_of(server, id, c.query), sent->body) << "must be reproducible";
    // The work folder was removed.
    EXPECT_TRUE(wait_until(
        [&] { return list_files(server.data) == std::vector<std::string>{id + ".ttrace"}; }));
  }
  const auto head = server.client().Head("/api/v1/sessions/" + id + "/export?format=folder");
  ASSERT_TRUE(head && head->status == 200);
  EXPECT_EQ(head->get_header_value("Content-Type"), "application/x-tar");
}

TEST_F(RunArchive, RejectsInvalidParameters) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const auto get_response = [&](const std::string& session, const std::string& query) {
    return server.get("/api/v1/sessions/" + session + "/export?" + query);
  };
  EXPECT_EQ(get_response("none", "format=folder").status, 404);
  for (const char* query :
       {"format=csv&part_rows=10", "format=arrow&part_rows=10", "format=folder&part_rows=10",
        "part_rows=-1", "part_rows=many", "format=Folder"}) {
    const TestResponse rejected = get_response(id, query);
    EXPECT_EQ(rejected.status, 400) << query << rejected.body;
  }
  EXPECT_EQ(get_export(server, id, "part_rows=0")->body.substr(0, 4), "PAR1");
}

TEST_F(RunArchive, RunningSessionExportsCommittedSteps) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = start_long_request(server);
  const TempFolder folder;
  unpack(archive_of(server, id), folder / "out");
  const json metadata = json::parse(read_bytes(folder.path() / "out" / id / "trace_metadata.json"));
  EXPECT_GT(metadata["steps"].size(), 3U);
  EXPECT_EQ(fs::file_size(folder.path() / "out" / id / "tensor_access.bin") % 64, 0U);
  cancel_and_wait(server, id);
}

TEST_F(RunArchive, RespectsFreeDiskSpace) {
  std::string id, bytes;
  const TempFolder data;
  {
    TestServer server({.data = data.path()});
    ASSERT_TRUE(server.wait_until_loaded());
    id = record(server);
    bytes = archive_of(server, id);
  }
  const auto only = std::vector<std::string>{id + ".ttrace"};
  for (const char* query : {"format=folder", "part_rows=1000"}) {
    const std::string path = "/api/v1/sessions/" + id + "/export?" + query;
    {
      TestServer server(
          {.model = {},
           .data = data.path(),
           .retention = {.max_age = {}, .keep_bytes = {}, .disk_reserve = 1ULL << 60}});
      const TestResponse rejected = server.get(path);
      EXPECT_EQ(rejected.status, 507) << rejected.body;
      EXPECT_EQ(rejected.body["code"], "quota_reached");
      EXPECT_EQ(rejected.type, "application/problem+json");
    }
    {  // the quota is one of sessions
      TestServer server({.model = {},
                         .data = data.path(),
                         .retention = {.max_age = {},
                                       .keep_bytes = fs::file_size(data.path() / (id + ".ttrace")),
                                       .disk_reserve = 0}});
      EXPECT_EQ(server.get(path).status, 200);
    }
    EXPECT_EQ(list_files(data.path()), only);
  }
  // The disk is full: the session fits, but a run folder does not.
  const SmallDisk disk(2);
  ASSERT_EQ(disk.problem(), "");
  fs::copy_file(data.path() / (id + ".ttrace"), disk / "s.ttrace");
  write_bytes(disk / "others", std::string(fs::space(disk.path()).available - 8192, 'x'));
  TestServer full({.model = {}, .data = disk.path()});
  for (const char* query : {"format=folder", "part_rows=1000"}) {
    const TestResponse rejected = full.get(std::string("/api/v1/sessions/s/export?") + query);
    EXPECT_EQ(rejected.status, 507) << rejected.body;
    EXPECT_EQ(list_files(disk.path()), (std::vector<std::string>{"others", "s.ttrace"}));
  }
  const TestResponse no_room = send_archive(full, bytes);
  EXPECT_EQ(no_room.status, 507) << no_room.body;
  EXPECT_EQ(list_files(disk.path()), (std::vector<std::string>{"others", "s.ttrace"}));
}

TEST_F(RunArchive, QuotaAppliesToSessionNotToArchive) {
  std::string bytes;
  std::uint64_t session_bytes = 0;
  {
    TestServer server;
    ASSERT_TRUE(server.wait_until_loaded());
    const std::string id = record(server);
    bytes = archive_of(server, id);
    session_bytes = fs::file_size(server.folder.path() / (id + ".ttrace"));
  }
  ASSERT_GT(bytes.size(), 2 * session_bytes);
  const auto imported_under = [&](std::uint64_t quota) {
    TestServer server(
        {.model = {}, .retention = {.max_age = {}, .keep_bytes = quota, .disk_reserve = 0}});
    const TestResponse answer = send_archive(server, bytes);
    EXPECT_EQ(list_files(server.data).size(), answer.status == 201 ? 1U : 0U);
    return answer;
  };
  const TestResponse taken = imported_under(2 * session_bytes);
  EXPECT_EQ(taken.status, 201) << taken.body;
  const TestResponse rejected = imported_under(session_bytes / 4);
  EXPECT_EQ(rejected.status, 507) << rejected.body;
  EXPECT_EQ(rejected.body["code"], "quota_reached");
}

TEST_F(RunArchive, ImportRestoresTheSession) {
  TestServer from;
  ASSERT_TRUE(from.wait_until_loaded());
  const std::string id = record(from);
  const TempFolder folder;
  command_output("cd " + folder.path().string() + " && " + std::string(kTestPaths.tt) +
                 " export -q " + (from.data / (id + ".ttrace")).string() +
                 " --format folder -o run && tar -cf tar.tar run");
  const SessionReader before = SessionReader::open(from.data / (id + ".ttrace")).value();
  const std::pair<const char*, std::string> archives[] = {
      {"application/x-tar", archive_of(from, id)},
      {"Application/X-TAR; of=tar", read_bytes(folder / "tar.tar")}};
  for (const auto& [type, bytes] : archives) {
    SCOPED_TRACE(type);
    TestServer to({.model = {}});
    const TestResponse taken = send_archive(to, bytes, type);
    ASSERT_EQ(taken.status, 201) << taken.body;
    EXPECT_EQ(taken.body["id"], id);
    EXPECT_EQ(taken.body["state"], "done");
    EXPECT_EQ(list_files(to.data), std::vector<std::string>{id + ".ttrace"});
    EXPECT_TRUE(check_session(to.data / (id + ".ttrace"))->empty());
    expect_same_session(before, SessionReader::open(to.data / (id + ".ttrace")).value());
  }
}

TEST_F(RunArchive, InvalidArchiveIsRejectedWithoutSideEffects) {
  const TempFolder folder;
  fs::create_directory(folder / "data");
  TestServer server({.model = {}, .data = folder / "data"});
  const auto send = [&](const std::string& bytes, const std::string& expected_error) {
    const TestResponse rejected = send_archive(server, bytes);
    EXPECT_EQ(rejected.status, 422) << rejected.body;
    const std::string detail = rejected.body.value("detail", "");
    EXPECT_TRUE(detail.contains(expected_error)) << detail;
    EXPECT_FALSE(detail.contains(folder.path().string())) << detail;
    EXPECT_TRUE(list_files(folder.path()).empty());
  };
  for (const InvalidArchive& invalid : invalid_archives()) {
    SCOPED_TRACE(invalid.what);
    send(invalid.bytes, invalid.expected_error);
  }
  // Valid archives of invalid run folders.
  const auto run = [](const std::string& metadata, const std::string& constants) {
    return tar_of({{.name = "run/trace_metadata.json", .data = metadata},
                   {.name = "run/accesses.csv", .data = constants},
                   {.name = "run/tensor_access.bin", .data = std::string(64, '\0')}});
  };
  send(run("{", "op\n"), "trace_metadata.json:1: Not the metadata");
  send(run(R"({"session":{},"steps":[]})", ""), "accesses.csv:1: The header line is missing");
  send(run(R"({"session":{},"steps":[{"step":0}]})", "op\n"), "tensor_access.bin:1: The record");
}

TEST_F(RunArchive, AbortedUploadLeavesNoFiles) {
  TestServer server({.model = {}});
  const std::string bytes(1 << 20, 't');
  {
    RawClient client(server.port);
    client.send(
        "POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-tar\r\n"
        "Content-Length: " +
        std::to_string(2 * bytes.size()) + "\r\n\r\n" + bytes);
    EXPECT_TRUE(wait_until([&] { return list_files(server.data).size() == 1; }));
  }
  EXPECT_TRUE(wait_until([&] { return list_files(server.data).empty(); }));
}

// What an export needed goes back to the kernel.
TEST(ExportMemory, IsReturned) {
  const TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1", "-c", "1024"});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.start_long_request();
  server.wait_for_end(id);
  const auto anonymous_bytes = [&] {
    std::ifstream status("/proc/" + std::to_string(server.program.pid()) + "/status");
    std::uint64_t kib = 0;
    for (std::string word; status >> word && word != "RssAnon:";) {
    }
    status >> kib;
    return kib << 10;
  };
  const std::uint64_t before = anonymous_bytes();
  ASSERT_GT(before, 0u);
  for (int i = 0; i < 6; ++i) {
    const auto answer =
        http_client(server.url).Get("/api/v1/sessions/" + id + "/export?format=parquet");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << answer->body;
  }
  EXPECT_TRUE(wait_until([&] { return anonymous_bytes() < before + (40u << 20); }))
      << anonymous_bytes() << " bytes, before " << before;
}

}  // namespace
}  // namespace tt::test
