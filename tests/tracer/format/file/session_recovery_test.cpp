// Recovery of unfinished sessions, also while their writers live.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tests/tracer/format/file/running_session.h"
#include "tracer/format/file/session_edit.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::begin_session;
using test::ChildProcess;
using test::random_session;
using test::RandomSession;
using test::running_info;
using test::TempFolder;
using Kind = TraceError::Kind;

TEST(Recovery, IgnoresSessionsOfLiveWriters) {
  TempFolder folder;
  const RandomSession session = random_session(24);
  auto writer = begin_session(folder / "here.ttrace", session);

  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  ChildProcess other([&] {
    auto theirs = SessionWriter::create(folder / "there.ttrace", running_info(session));
    if (!theirs || !add_all(**theirs, session)) return 1;
    if (write(ready[1], "x", 1) != 1) return 2;
    pause();
    return 0;
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);

  EXPECT_TRUE(recover_sessions(folder.path())->empty());
  for (const char* name : {"here.ttrace", "there.ttrace"})
    EXPECT_EQ(SessionReader::open(folder / name)->info()->state, SessionState::Running) << name;
  ASSERT_TRUE(add_all(*writer, session).has_value());
  ASSERT_TRUE(writer->finish(session.info, session.losses).has_value());
  EXPECT_EQ(test::read_session(folder / "here.ttrace").value(), session);

  other.kill_now();
  close(ready[0]);
  close(ready[1]);
  const auto recovered = recover_sessions(folder.path());
  ASSERT_EQ(recovered->size(), 1u);
  EXPECT_EQ(recovered->front().path, folder / "there.ttrace");
  EXPECT_EQ(recovered->front().steps, session.steps.size());
  const auto reader = SessionReader::open(folder / "there.ttrace");
  EXPECT_EQ(reader->info()->state, SessionState::Recovered);
  for (const char* suffix : {"-wal", "-shm", "-reserve"})
    EXPECT_FALSE(fs::exists((folder / "there.ttrace").string() + suffix)) << suffix;
  EXPECT_TRUE(recover_sessions(folder.path())->empty());
}

// Files that SQLite ignores and leaves: of a writer killed before the first page of its journal,
// and of a reader that opened the file while it left WAL mode.
TEST(Recovery, RemovesFilesThatAreNotUsed) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace", journal = folder / "s.ttrace-journal";
  const RandomSession session = random_session(34);
  auto writer = begin_session(file, session);
  ASSERT_TRUE(add_all(*writer, session).has_value());
  ASSERT_TRUE(writer->finish(session.info, session.losses).has_value());
  for (const std::size_t bytes : {0U, 512U}) {
    SCOPED_TRACE(bytes);
    std::ofstream(journal, std::ios::binary) << std::string(bytes, '\0');
    EXPECT_TRUE(recover_sessions(folder.path())->empty());
    EXPECT_FALSE(fs::exists(journal));
    EXPECT_EQ(test::read_session(file).value(), session);
  }
  const auto leave_empty_wal = [&] {
    std::ofstream(folder / "s.ttrace-wal").flush();
    std::ofstream(folder / "s.ttrace-shm") << std::string(32768, '\0');
  };
  leave_empty_wal();
  EXPECT_TRUE(recover_sessions(folder.path())->empty());
  EXPECT_FALSE(fs::exists(folder / "s.ttrace-wal") || fs::exists(folder / "s.ttrace-shm"));
  leave_empty_wal();
  EXPECT_TRUE(checkpoint_session(file).has_value());
  EXPECT_FALSE(fs::exists(folder / "s.ttrace-wal") || fs::exists(folder / "s.ttrace-shm"));
  EXPECT_EQ(test::read_session(file).value(), session);
}

// A session whose rows cannot be counted must not be marked as done with 0 of them.
TEST(Recovery, WritesTotalsMissingFromFailedFinish) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(33);
  auto writer = begin_session(file, session);
  ASSERT_TRUE(add_all(*writer, session).has_value());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  const auto run = [&](const char* sql) {
    return sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  };
  ASSERT_EQ(run("CREATE TEMP TABLE statements AS SELECT name, sql FROM sqlite_schema"), SQLITE_OK);
  ASSERT_EQ(run("ALTER TABLE tt_token RENAME TO elsewhere"), SQLITE_OK);
  EXPECT_FALSE(writer->finish(session.info, session.losses).has_value());
  ASSERT_EQ(run("ALTER TABLE elsewhere RENAME TO tt_token"), SQLITE_OK);
  // RENAME changes the text of the statement; a file with another schema is not recovered.
  ASSERT_EQ(run("PRAGMA writable_schema = ON"), SQLITE_OK);
  ASSERT_EQ(run("UPDATE sqlite_schema AS now SET sql = "
                "(SELECT sql FROM statements WHERE name = now.name)"),
            SQLITE_OK);
  sqlite3_close(db);

  const auto recovered = recover_sessions(folder.path());
  ASSERT_EQ(recovered->size(), 1u);
  const auto reader = SessionReader::open(file);
  EXPECT_EQ(reader->info()->state, SessionState::Recovered);
  EXPECT_EQ(reader->step_count().value(), session.steps.size());
  EXPECT_EQ(reader->token_count().value(), session.tokens.size());
}

TEST(Recovery, RecoversSessionOfDestroyedWriter) {
  TempFolder folder;
  const RandomSession session = random_session(25);
  {
    auto writer = begin_session(folder / "s.ttrace", session);
    ASSERT_TRUE(add_all(*writer, session).has_value());
  }
  EXPECT_EQ(SessionReader::open(folder / "s.ttrace")->info()->state, SessionState::Running);
  EXPECT_EQ(recover_sessions(folder.path())->size(), 1u);
  EXPECT_EQ(SessionReader::open(folder / "s.ttrace")->info()->state, SessionState::Recovered);
}

// As seen from another container, where the owner's process id is meaningless.
TEST(Recovery, TrustsLocksOverProcessIds) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(26);
  auto writer = begin_session(file, session);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(
      sqlite3_exec(db, "DELETE FROM tt_meta WHERE key LIKE 'owner.%'", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(db);
  ChildProcess other([&] { return recover_sessions(folder.path())->empty() ? 0 : 1; });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(SessionReader::open(file)->info()->state, SessionState::Running);
  EXPECT_TRUE(fs::exists(folder / "s.ttrace-reserve")) << "space that finish() may need";
  ASSERT_TRUE(add_all(*writer, session).has_value());
}

TEST(Recovery, IgnoresOtherFiles) {
  TempFolder folder;
  std::ofstream(folder / "text.ttrace") << "not a session";
  std::ofstream(folder / "notes.txt") << "mine";
  std::ofstream(folder / "young.ttrace-new") << "being made";
  std::ofstream(folder / "old.ttrace-new") << "left by a kill";
  fs::last_write_time(folder / "old.ttrace-new",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(recover_sessions(folder.path())->empty());
  EXPECT_TRUE(fs::exists(folder / "text.ttrace"));
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder / "young.ttrace-new"));
  EXPECT_FALSE(fs::exists(folder / "old.ttrace-new"));
  EXPECT_EQ(recover_sessions(folder / "none").error().kind, Kind::NotFound);
}

}  // namespace
}  // namespace tt
