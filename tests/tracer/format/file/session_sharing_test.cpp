// A session that is being written: concurrent readers, and recovery by other processes.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/support/child_process.h"
#include "tests/support/read_only_folder.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::ChildProcess;
using test::random_session;
using test::RandomSession;
using test::TempFolder;
using Kind = TraceError::Kind;

SessionInfo running(const RandomSession& session) {
  SessionInfo info = session.info;
  info.state = SessionState::Running;
  return info;
}

std::unique_ptr<SessionWriter> begin(const fs::path& file, const RandomSession& session) {
  auto writer = SessionWriter::create(file, running(session));
  EXPECT_TRUE(writer.has_value()) << writer.error().message;
  return std::move(*writer);
}

// Reads while `file` grows until it is finished. Returns an empty string if every row was right.
// `looks` counts how often the whole file was read.
std::string watch(const fs::path& file, const RandomSession& expected,
                  std::atomic<std::uint32_t>& looks) {
  std::uint32_t last = 0;
  auto reader = SessionReader::open(file);
  if (!reader) return reader.error().message;
  while (true) {
    const auto info = reader->info();
    if (!info) return info.error().message;
    const auto n = reader->step_count();
    if (!n) return n.error().message;
    if (*n < last) return "steps vanished";
    for (; last < *n; ++last) {
      const auto step = reader->step(StepId{last});
      if (!step) return step.error().message;
      if (*step != expected.steps[last]) return "a step differs";
    }
    ++looks;
    if (info->state != SessionState::Running)
      return last == expected.steps.size() ? "" : "steps are missing at the end";
  }
}

TEST(RunningSession, IsReadableDuringWrite) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(21, {3, 30, 20, 4, 800, 10});
  auto writer = begin(file, session);
  RandomSession head = session;
  head.steps.clear();
  ASSERT_TRUE(add_all(*writer, head).has_value());

  // One reader in a thread of this process, one in another process.
  std::string seen_here;
  std::atomic<std::uint32_t> looks = 0;
  ChildProcess other([&] {
    std::atomic<std::uint32_t> ignored = 0;
    return watch(file, session, ignored).empty() ? 0 : 1;
  });
  std::jthread thread([&] { seen_here = watch(file, session, looks); });
  for (const Step& step : session.steps) {
    ASSERT_TRUE(writer->add_step(step).has_value());
    const auto committed = writer->commit();
    ASSERT_TRUE(committed.has_value()) << committed.error().message;
    if (step.id.v % 200 != 0) continue;
    // The reader has seen this state of the file or a later one.
    const std::uint32_t before = looks;
    ASSERT_TRUE(test::wait_until([&] { return looks > before; }));
  }
  const auto finished = writer->finish(session.info, session.losses);
  ASSERT_TRUE(finished.has_value()) << finished.error().message;
  thread.join();
  EXPECT_EQ(seen_here, "");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_GT(looks, 3u);
  EXPECT_EQ(check_session(file).value(), std::vector<std::string>{});
}

// Rows come from a snapshot of the file. Rows that a writer added later do not count as missing.
TEST(RunningSession, GrowsWhileRowsAreRead) {
  TempFolder folder;
  const RandomSession session = random_session(23);
  auto writer = begin(folder / "s.ttrace", session);
  RandomSession head = session;
  head.steps.clear();
  ASSERT_TRUE(add_all(*writer, head).has_value());
  std::size_t written = 0;
  const auto write_one = [&] {
    if (written == session.steps.size()) return;
    EXPECT_TRUE(writer->add_step(session.steps[written++]).has_value());
    EXPECT_TRUE(writer->commit().has_value());
  };
  write_one();
  const auto reader = SessionReader::open(folder / "s.ttrace");
  ASSERT_TRUE(reader.has_value());
  std::vector<std::uint32_t> seen;
  const auto read =
      reader->for_each_step_row(StepId{0}, UINT32_MAX, [&](const SessionReader::StepRow& row) {
        seen.push_back(row.head.id.v);
        write_one();
        return true;
      });
  EXPECT_TRUE(read.has_value()) << read.error().message;
  ASSERT_GT(session.steps.size(), 3U);
  EXPECT_EQ(seen.size(), session.steps.size());
}

// Steps and their faults are added between any two queries of the check.
TEST(RunningSession, PassesCheckWhileItGrows) {
  TempFolder folder;
  const RandomSession session = random_session(12, {3, 30, 20, 4, 300, 300});
  auto writer = begin(folder / "s.ttrace", session);
  RandomSession head = session;
  head.steps.clear();
  head.faults.clear();
  ASSERT_TRUE(add_all(*writer, head).has_value());
  std::size_t written = 0;
  auto faults = session.faults.begin();
  const auto write_one = [&] {
    if (written == session.steps.size()) return;
    const Step& step = session.steps[written++];
    EXPECT_TRUE(writer->add_step(step).has_value());
    if (faults != session.faults.end() && faults->step == step.id) {
      EXPECT_TRUE(writer->add_faults(*faults++, step.begin).has_value());
    }
    EXPECT_TRUE(writer->commit().has_value());
  };
  ASSERT_TRUE(writer->commit().has_value());
  std::size_t checks = 0;
  while (written < session.steps.size()) {
    const auto problems = check_session(folder / "s.ttrace", [&] {
      write_one();
      return true;
    });
    ASSERT_TRUE(problems.has_value()) << problems.error().message;
    ASSERT_TRUE(problems->empty()) << written << ": " << problems->front();
    ++checks;
  }
  EXPECT_GT(checks, 1U);
}

TEST(RunningSession, ShowsOnlyCommittedRows) {
  TempFolder folder;
  const RandomSession session = random_session(22);
  auto writer = begin(folder / "s.ttrace", session);
  RandomSession head = session;
  head.steps.clear();
  ASSERT_TRUE(add_all(*writer, head).has_value());
  const auto reader = SessionReader::open(folder / "s.ttrace");
  ASSERT_TRUE(reader.has_value());
  ASSERT_TRUE(writer->add_step(session.steps[0]).has_value());
  EXPECT_EQ(reader->step_count().value(), 0u);
  ASSERT_TRUE(writer->commit().has_value());
  EXPECT_EQ(reader->step_count().value(), 1u);
  EXPECT_EQ(reader->info()->state, SessionState::Running);
  EXPECT_GT(writer->bytes_written(), 4096u);
}

TEST(RunningSession, FinishesBesideReaderAndMergesWalLater) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(23);
  auto writer = begin(file, session);
  {
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value());
    ASSERT_TRUE(add_all(*writer, session).has_value());
    EXPECT_EQ(reader->step_count().value(), session.steps.size());
    ASSERT_TRUE(writer->finish(session.info, session.losses).has_value());
    EXPECT_EQ(reader->info().value(), session.info);
    EXPECT_EQ(reader->step(StepId{3}).value(), session.steps[3]);
  }
  EXPECT_EQ(test::read_session(file).value(), session);
  EXPECT_TRUE(recover_sessions(folder.path())->empty());  // it was not Running
  EXPECT_FALSE(fs::exists(folder / "s.ttrace-wal"));
  EXPECT_FALSE(fs::exists(folder / "s.ttrace-shm"));
  EXPECT_EQ(test::read_session(file).value(), session);
}

// ---------------------------------------------------------------------------
// Recovery

TEST(Recovery, IgnoresSessionsOfLiveWriters) {
  TempFolder folder;
  const RandomSession session = random_session(24);
  auto writer = begin(folder / "here.ttrace", session);

  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  ChildProcess other([&] {
    auto theirs = SessionWriter::create(folder / "there.ttrace", running(session));
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

// A session whose rows cannot be counted must not be marked as done with 0 of them.
TEST(Recovery, WritesTotalsMissingFromFailedFinish) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(33);
  auto writer = begin(file, session);
  ASSERT_TRUE(add_all(*writer, session).has_value());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  const auto run = [&](const char* sql) {
    return sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  };
  ASSERT_EQ(run("ALTER TABLE tt_token RENAME TO elsewhere"), SQLITE_OK);
  EXPECT_FALSE(writer->finish(session.info, session.losses).has_value());
  ASSERT_EQ(run("ALTER TABLE elsewhere RENAME TO tt_token"), SQLITE_OK);
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
    auto writer = begin(folder / "s.ttrace", session);
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
  auto writer = begin(file, session);
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

// ---------------------------------------------------------------------------
// Read-only folders

// Runs `body` with `folder` and its files read-only.
template <class Body>
int run_read_only(const fs::path& folder, Body body) {
  for (const auto& entry : fs::directory_iterator(folder))
    fs::permissions(entry.path(), fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  const int status = ChildProcess([&] {
                       if (!test::drop_permission_override() || access(folder.c_str(), W_OK) == 0)
                         return 100;
                       return body();
                     }).wait();
  fs::permissions(folder, fs::perms::owner_all);
  return status;
}

TEST(ReadOnlyFolder, FinishedSessionIsReadable) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(27);
  ASSERT_TRUE(test::write_session(file, session).has_value());
  EXPECT_EQ(run_read_only(folder.path(),
                          [&] { return test::read_session(file).value() == session ? 0 : 1; }),
            0);
}

// Still in WAL mode, because a reader had it open when it was finished.
TEST(ReadOnlyFolder, WalModeFileWithoutWalIsReadable) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(28);
  auto writer = begin(file, session);
  {
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(add_all(*writer, session).has_value());
    ASSERT_TRUE(reader->step_count().has_value());
    ASSERT_TRUE(writer->finish(session.info, session.losses).has_value());
  }
  const auto readable = [&] { return test::read_session(file).value() == session ? 0 : 1; };
  EXPECT_EQ(run_read_only(folder.path(), readable), 0);
  fs::remove(folder / "s.ttrace-wal");
  fs::remove(folder / "s.ttrace-shm");
  EXPECT_EQ(run_read_only(folder.path(), readable), 0);
}

TEST(ReadOnlyFolder, RunningSessionIsReadable) {
  TempFolder folder;
  const fs::path file = folder / "s.ttrace";
  const RandomSession session = random_session(29);
  auto writer = begin(file, session);
  ASSERT_TRUE(add_all(*writer, session).has_value());
  EXPECT_EQ(run_read_only(folder.path(),
                          [&] {
                            const auto reader = SessionReader::open(file);
                            if (!reader) return 1;
                            const auto n = reader->step_count();
                            if (!n || *n != session.steps.size()) return 2;
                            return reader->step(StepId{1}).value() == session.steps[1] ? 0 : 3;
                          }),
            0);
}

// A copy of a killed writer's files, without the -shm.
TEST(ReadOnlyFolder, UnfinishedSessionErrorSaysWhatToDo) {
  TempFolder folder, copy;
  const RandomSession session = random_session(30);
  auto writer = begin(folder / "s.ttrace", session);
  ASSERT_TRUE(add_all(*writer, session).has_value());
  fs::copy_file(folder / "s.ttrace", copy / "s.ttrace");
  fs::copy_file(folder / "s.ttrace-wal", copy / "s.ttrace-wal");
  EXPECT_EQ(run_read_only(copy.path(),
                          [&] {
                            const auto reader = SessionReader::open(copy / "s.ttrace");
                            if (reader) return 1;
                            if (!reader.error().message.contains("Copy")) return 2;
                            return reader.error().kind == Kind::ReadOnly ? 0 : 3;
                          }),
            0);
  // In a writable folder everything is readable.
  EXPECT_EQ(SessionReader::open(copy / "s.ttrace")->step_count().value(), session.steps.size());
}

TEST(ReadOnlyFolder, RejectsNewSession) {
  TempFolder folder;
  EXPECT_EQ(run_read_only(folder.path(),
                          [&] {
                            const auto writer =
                                SessionWriter::create(folder / "s.ttrace", random_session(31).info);
                            return !writer && writer.error().kind == Kind::ReadOnly ? 0 : 1;
                          }),
            0);
}

// ---------------------------------------------------------------------------
// File systems that do not support WAL, simulated by a VFS shim.

sqlite3_vfs* real_vfs = nullptr;
sqlite3_io_methods shim_methods;
bool shared_memory_is_declared = false;

int shim_open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  const int code = real_vfs->xOpen(real_vfs, name, file, flags, out_flags);
  if (code != SQLITE_OK || !(flags & SQLITE_OPEN_MAIN_DB)) return code;
  shim_methods = *file->pMethods;
  if (shared_memory_is_declared)
    shim_methods.xShmMap = [](sqlite3_file*, int, int, int, void volatile**) {
      return SQLITE_IOERR_SHMMAP;
    };
  else
    shim_methods.iVersion = 1;
  file->pMethods = &shim_methods;
  return code;
}

TEST(FileSystemWithoutSharedMemory, ErrorSaysWhatToDo) {
  real_vfs = sqlite3_vfs_find(nullptr);
  sqlite3_vfs shim = *real_vfs;
  shim.zName = "poor";
  shim.xOpen = shim_open;
  for (const bool declared : {false, true}) {
    shared_memory_is_declared = declared;
    TempFolder folder;
    ASSERT_EQ(sqlite3_vfs_register(&shim, 1), SQLITE_OK);
    const auto writer = SessionWriter::create(folder / "s.ttrace", random_session(32).info);
    sqlite3_vfs_unregister(&shim);
    sqlite3_vfs_register(real_vfs, 1);
    ASSERT_FALSE(writer.has_value()) << declared;
    EXPECT_EQ(writer.error().kind, Kind::WalUnsupported) << writer.error().message;
    EXPECT_NE(writer.error().message.find("local disk"), std::string::npos);
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

}  // namespace
}  // namespace tt
