// The server's own files, replaced by what is not a regular file, or has no end: it starts, answers
// and writes, or ends with a message.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

struct Bad {
  const char* name;
  std::function<void(const fs::path&)> make;
};

const std::vector<Bad>& bad_files() {
  static const std::vector<Bad> all = {
      {"FIFO", [](const fs::path& file) { ASSERT_EQ(mkfifo(file.c_str(), 0600), 0); }},
      {"folder", [](const fs::path& file) { fs::create_directory(file); }},
      {"device", [](const fs::path& file) { fs::create_symlink("/dev/zero", file); }},
      {"loop", [](const fs::path& file) { fs::create_symlink(file.filename(), file); }},
      {"terabyte",
       [](const fs::path& file) {
         std::ofstream(file) << "";
         fs::resize_file(file, std::uintmax_t{1} << 40);
       }},
  };
  return all;
}

TEST(OwnFiles, TheServerStartsWithAnyFileInPlaceOfItsOwn) {
  for (const Bad& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    const TempFolder folder, models;
    const SmallSession session({small_step(0), small_step(1)});
    fs::copy_file(session.path, folder / "good.ttrace");
    fs::copy_file(session.path, folder / "beside.ttrace");
    fs::copy_file(session.path, folder / "walled.ttrace");
    for (const char* name : {"crashed-models", "checked-models", "bad.ttrace",
                             "beside.ttrace-journal", "walled.ttrace-wal"})
      bad.make(folder / name);
    bad.make(models / "bad.gguf");
    fs::copy_file(kTestPaths.bundled_model, models / "good.gguf");
    RunningServer server(folder.path(), {"--models-dir", models.path().string()});
    ASSERT_TRUE(server.url.starts_with("http://")) << server.program.stderr_text();
    EXPECT_EQ(server.load("good"), "") << server.program.stderr_text();
    httplib::Client client = http_client(server.url);
    for (const char* target :
         {"/api/v1/health", "/api/v1/sessions", "/api/v1/models", "/api/v1/sessions/good",
          "/api/v1/sessions/beside", "/api/v1/sessions/bad"}) {
      const auto answer = client.Get(target);
      ASSERT_TRUE(answer) << target;
      EXPECT_NE(answer->status, 503) << target << answer->body;
    }
    // Without the content, which may have a terabyte.
    ASSERT_TRUE(client.Head("/api/v1/sessions/bad/file"));
    EXPECT_EQ(client.Get("/api/v1/sessions/good")->status, 200);
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  }
}

TEST(OwnFiles, AKeyFileIsARegularFile) {
  for (const Bad& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    const TempFolder folder;
    bad.make(folder / "key");
    Program server({"--port", "0", "--no-model", "--data-dir", folder.path().string(),
                    "--api-key-file", (folder / "key").string()});
    EXPECT_EQ(server.wait(), 2);
    EXPECT_TRUE(server.stderr_text().contains("key")) << server.stderr_text();
    EXPECT_FALSE(server.stderr_text().contains("terminate called"));
  }
}

// The last catch of main(): the exception is reported.
TEST(OwnFiles, ALackOfThreadsOrMemoryIsNoAbort) {
  for (const char* before : {"ulimit -d 12000", "ulimit -d 30000", "ulimit -v 400000"}) {
    SCOPED_TRACE(before);
    const TempFolder folder;
    const std::string command = std::string(before) + "; exec timeout -s TERM 5 " +
                                kTestPaths.server + " --port 0 --no-model --data-dir " +
                                folder.path().string();
    Program server({"-c", command}, {}, "/bin/bash");
    const int code = server.wait();
    EXPECT_TRUE(code == 0 || code == 1 || code == 2 || code == 124 || code == 127)
        << code << server.stderr_text();
  }
}

}  // namespace
}  // namespace tt::test
