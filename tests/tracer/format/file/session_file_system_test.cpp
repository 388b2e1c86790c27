// Sessions in read-only folders and on file systems without shared memory.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/child_process.h"
#include "tests/support/read_only_folder.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tests/tracer/format/file/running_session.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using test::begin_session;
using test::ChildProcess;
using test::random_session;
using test::RandomSession;
using test::TempFolder;
using Kind = TraceError::Kind;

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
  auto writer = begin_session(file, session);
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
  auto writer = begin_session(file, session);
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
  auto writer = begin_session(folder / "s.ttrace", session);
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
