// A session that is being written: concurrent readers.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/child_process.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
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
  auto writer = begin_session(file, session);
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
  auto writer = begin_session(folder / "s.ttrace", session);
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
  auto writer = begin_session(folder / "s.ttrace", session);
  RandomSession head = session;
  head.steps.clear();
  head.faults.clear();
  head.minor_faults.clear();
  head.residency.clear();
  head.values.clear();
  head.splits.clear();
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
  auto writer = begin_session(folder / "s.ttrace", session);
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
  auto writer = begin_session(file, session);
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

}  // namespace
}  // namespace tt
