// A writer that is killed at any moment, and a full disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "tests/support/child_process.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::ChildProcess;
using test::Dice;
using test::random_session;
using test::RandomSession;
using test::SmallDisk;
using test::TempFolder;
using test::wait_until;
using Kind = TraceError::Kind;

// Progress that a child reports, readable after its death.
struct ChildProgress {
  std::atomic<std::uint32_t> submitted{0};  // add_step() was called
  std::atomic<std::uint32_t> committed{0};  // commit() returned
  std::atomic<bool> created{false};
  char message[400] = "";
};

using SharedProgress = test::Shared<ChildProgress>;

// Writes the steps of `session` repeatedly until an error ends it.
TraceError write_until_error(const fs::path& file, const RandomSession& session,
                             std::uint32_t steps_per_commit, ChildProgress& progress,
                             std::unique_ptr<SessionWriter>& writer) {
  SessionInfo info = session.info;
  info.state = SessionState::Running;
  auto made = SessionWriter::create(file, info);
  if (!made) return made.error();
  writer = std::move(*made);
  progress.created = true;
  RandomSession head = session;
  head.steps.clear();
  if (auto done = add_all(*writer, head); !done) return done.error();
  for (std::uint32_t i = 0;; ++i) {
    Step step = session.steps[i % session.steps.size()];
    step.id = StepId{i};
    ++progress.submitted;
    if (auto done = writer->add_step(step); !done) return done.error();
    if ((i + 1) % steps_per_commit != 0) continue;
    if (auto done = writer->commit(); !done) return done.error();
    progress.committed = i + 1;
  }
}

// Returns the number of steps in `file`; -1 if it is unreadable or any step differs.
int count_valid_steps(const fs::path& file, const RandomSession& session) {
  const auto reader = SessionReader::open(file);
  if (!reader) return -1;
  int n = 0;
  const auto done = reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    Step expected = session.steps[step.id.v % session.steps.size()];
    expected.id = step.id;
    if (step != expected) return false;
    ++n;
    return true;
  });
  return done ? n : -1;
}

TEST(KilledWriter, LosesAtMostUncommittedSteps) {
  constexpr int kKills = 100;
  const RandomSession session = random_session(41, {2, 60, 300, 4, 40, 50});
  int worst[] = {0, 0}, before_creation = 0;
  std::uint64_t steps_found = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE(kill);
    Dice dice(static_cast<std::uint64_t>(kill));
    const bool batches = dice.one_in(4);
    const std::uint32_t steps_per_commit = batches ? 5 : 1;
    TempFolder folder;
    const fs::path file = folder / "s.ttrace";
    SharedProgress progress;
    ChildProcess child([&] {
      std::unique_ptr<SessionWriter> writer;
      write_until_error(file, session, steps_per_commit, *progress.operator->(), writer);
      return 1;
    });
    // Every tenth is killed while the file is created, the others later; at a random moment.
    if (kill % 10 != 0) {
      ASSERT_TRUE(wait_until([&] { return progress->created.load(); }, 60s, 100us));
    }
    usleep(static_cast<useconds_t>(dice.below(kill % 10 == 0 ? 8'000 : 30'000)));
    child.kill_now();

    if (!fs::exists(file)) {
      ++before_creation;
      EXPECT_FALSE(progress->created);
      continue;
    }
    // Like the next start: read (a browser may come first), recover, check.
    ASSERT_GE(count_valid_steps(file, session), static_cast<int>(progress->committed));
    const auto recovered = recover_sessions(folder.path());
    ASSERT_TRUE(recovered.has_value());
    ASSERT_EQ(recovered->size(), 1u);
    ASSERT_EQ(check_session(file).value(), std::vector<std::string>{});
    const int found = count_valid_steps(file, session);
    ASSERT_GE(found, static_cast<int>(progress->committed));
    ASSERT_EQ(recovered->front().steps, static_cast<std::uint32_t>(found));
    ASSERT_FALSE(fs::exists(file.string() + "-wal"));
    const int lost = static_cast<int>(progress->submitted) - found;
    ASSERT_LE(lost, static_cast<int>(steps_per_commit));
    worst[batches] = std::max(worst[batches], lost);
    steps_found += static_cast<std::uint64_t>(found);
  }
  std::printf(
      "%d kills: worst loss %d step (bound 1) committing each step, %d steps (bound 5) in batches "
      "of 5; %llu steps found, %d killed before the file had its name\n",
      kKills, worst[0], worst[1], static_cast<unsigned long long>(steps_found), before_creation);
  EXPECT_GT(steps_found, 500u);
}

// ---------------------------------------------------------------------------
// Full disk

// Another way to run out of space, which needs no privileges: a file size limit of 1 MiB.
void limit_file_size() {
  const rlimit limit{1 << 20, 1 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, SIG_IGN);
}

enum class SpaceLimit { Disk, FileSizeLimit };

// Records until there is no space, ends the session, and checks it. Returns 0 on success; a
// failure is described in `message`.
int record_until_full(const fs::path& folder, SpaceLimit by, ChildProgress& progress) {
  const auto fail = [&](const char* what, const std::string& detail = "") {
    snprintf(progress.message, sizeof progress.message, "%s: %s", what, detail.c_str());
    return 1;
  };
  if (by == SpaceLimit::FileSizeLimit) limit_file_size();
  const RandomSession session = random_session(42, {2, 60, 60, 4, 40, 50});
  const fs::path file = folder / "s.ttrace";
  std::unique_ptr<SessionWriter> writer;
  const TraceError error = write_until_error(file, session, 1, progress, writer);
  if (error.kind != Kind::DiskFull) return fail("not DiskFull", error.message);
  if (!error.message.contains("Free some space"))
    return fail("it does not say what to do", error.message);
  const auto more = writer->add_step(session.steps[0]);
  if (more || more.error().kind != Kind::DiskFull) return fail("it goes on after the error");

  const int committed = static_cast<int>(progress.committed);
  if (const int n = count_valid_steps(file, session); n != committed)
    return fail("before the end, steps", std::to_string(n));

  SessionInfo info = session.info;
  info.state = SessionState::Failed;
  info.error = error.message;
  LossCounters losses;
  losses.steps_not_written = 3;
  const auto finished = writer->finish(info, losses);
  writer.reset();
  const auto reader = SessionReader::open(file);
  if (!reader) return fail("after the end", reader.error().message);
  if (const int n = count_valid_steps(file, session); n != committed)
    return fail("after the end, steps", std::to_string(n));
  const auto problems = check_session(file);
  if (!problems->empty()) return fail("check", problems->front());
  const auto read = reader->info();
  if (!read) return fail("info", read.error().message);
  if (read->state != SessionState::Failed)
    return fail("the file does not say that it failed", finished ? "" : finished.error().message);
  if (reader->losses()->steps_not_written != 3) return fail("losses");
  snprintf(progress.message, sizeof progress.message, "%d steps kept, %s, %s", committed,
           by == SpaceLimit::Disk ? "tmpfs of 1 MiB" : "no file over 1 MiB",
           fs::exists(file.string() + "-wal") ? "with a WAL beside the file" : "one file");
  return 0;
}

void expect_clean_end(const fs::path& folder, SpaceLimit by) {
  SharedProgress progress;
  ChildProcess child([&] { return record_until_full(folder, by, *progress.operator->()); });
  EXPECT_EQ(child.wait(), 0) << progress->message;
  EXPECT_GT(progress->committed, 10u);
  std::printf("%s\n", progress->message);
}

TEST(FullDisk, EndsRecordingAndKeepsCommittedSteps) {
  const SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  expect_clean_end(disk.path(), SpaceLimit::Disk);
}

// The space reserved for the end of a recording is used to recover a killed recording.
TEST(FullDisk, RecoversKilledRecordingFromReservedSpace) {
  const SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  const fs::path file = disk / "s.ttrace";
  const RandomSession session = random_session(44, {1, 10, 10, 2, 5, 5});
  SharedProgress progress;
  ChildProcess child([&] {
    SessionInfo info = session.info;
    info.state = SessionState::Running;
    const auto writer = SessionWriter::create(file, info);
    if (!writer || !add_all(**writer, session)) return 1;
    progress->created = true;
    pause();
    return 2;
  });
  ASSERT_TRUE(wait_until([&] { return progress->created.load(); }));
  child.kill_now();
  ASSERT_GT(fs::file_size(file.string() + "-wal"), 0U);
  ASSERT_LT(fs::file_size(file.string() + "-wal"), 60'000U);
  std::ofstream filler(disk / "filler");
  while (filler.put('x').flush()) {
  }
  ASSERT_EQ(fs::space(disk.path()).available, 0U);

  const auto recovered = recover_sessions(disk.path());
  ASSERT_EQ(recovered->size(), 1u);
  EXPECT_EQ(recovered->front().steps, session.steps.size());
  EXPECT_EQ(check_session(file).value(), std::vector<std::string>{});
  EXPECT_EQ(SessionReader::open(file)->info()->state, SessionState::Recovered);
  for (const char* suffix : {"-wal", "-shm", "-reserve"})
    EXPECT_FALSE(fs::exists(file.string() + suffix)) << suffix;
}

TEST(FileSizeLimit, EndsRecordingAndKeepsCommittedSteps) {
  const TempFolder folder;
  expect_clean_end(folder.path(), SpaceLimit::FileSizeLimit);
}

TEST(FullDisk, RejectsNewSessionAndLeavesNoFile) {
  TempFolder folder;
  ChildProcess child([&] {
    const rlimit limit{8192, 8192};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    const auto writer = SessionWriter::create(folder / "s.ttrace", random_session(43).info);
    if (writer) return 1;
    if (writer.error().kind != Kind::DiskFull) return 2;
    return fs::is_empty(folder.path()) ? 0 : 3;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace tt
