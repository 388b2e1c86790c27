// A recording, its end and its recovery, killed before each single change of a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/kill_points.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

// Progress that a child reports, readable after its death.
struct ChildProgress {
  std::atomic<bool> created{false};
  std::atomic<std::uint32_t> committed{0};  // steps
  std::atomic<std::uint64_t> changes{0};    // when the end began
  std::atomic<bool> finishing{false}, finished{false};
};

// The number of file changes of a child: in total, and before finishing began.
struct ChangeCounts {
  std::uint64_t all = 0, before_end = 0;
};

RandomSession finished_session() {
  RandomSession session = random_session(61, {2, 40, 40, 3, 8, 30});
  session.info.state = SessionState::Done;
  session.info.error.clear();
  session.faults.clear();
  session.minor_faults.clear();
  session.residency.clear();
  session.values.clear();
  session.splits.clear();
  return session;
}

int record(const fs::path& file, const RandomSession& session, ChildProgress& progress) {
  SessionInfo running = session.info;
  running.state = SessionState::Running;
  auto writer = SessionWriter::create(file, running);
  if (!writer) return 1;
  progress.created = true;
  RandomSession head = session;
  head.steps.clear();
  if (!add_all(**writer, head)) return 2;
  for (const Step& step : session.steps) {
    if (!(*writer)->add_step(step) || !(*writer)->commit()) return 3;
    ++progress.committed;
  }
  progress.changes = changes();
  progress.finishing = true;
  if (!(*writer)->finish(session.info, session.losses)) return 4;
  progress.finished = true;
  return 0;
}

ChangeCounts count_changes(const RandomSession& session) {
  const TempFolder folder;
  Shared<ChildProgress> progress;
  Shared<std::atomic<std::uint64_t>> all;
  ChildProcess child([&] {
    const std::uint64_t before = changes();
    const int failed = record(folder / "s.ttrace", session, *progress);
    *all = changes() - before;
    progress->changes -= before;
    return failed;
  });
  EXPECT_EQ(child.wait(), 0);
  return {.all = *all, .before_end = progress->changes};
}

// Records a session and is killed at the nth change.
void record_and_kill(std::uint64_t nth, Torn torn, const fs::path& file,
                     const RandomSession& session, ChildProgress& progress) {
  ChildProcess child([&] {
    die_before_change(nth, torn);
    return record(file, session, progress);
  });
  EXPECT_EQ(child.wait(), -1) << "it was not killed";
}

std::set<std::string> file_names(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

// The file is a complete session that lacks at most the step in flight.
void expect_whole(const fs::path& file, const RandomSession& session,
                  const ChildProgress& progress) {
  ASSERT_EQ(check_session(file).value(), std::vector<std::string>{});
  const auto read = read_session(file);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_GE(read->steps.size(), progress.committed);
  ASSERT_LE(read->steps.size(), progress.committed + 1);
  for (std::size_t i = 0; i < read->steps.size(); ++i) ASSERT_EQ(read->steps[i], session.steps[i]);
  if (progress.committed > 0) {
    EXPECT_EQ(read->tokens, session.tokens);
    EXPECT_EQ(read->templates, session.templates);
  }
  if (read->info.state == SessionState::Done) {
    EXPECT_TRUE(progress.finishing);
    EXPECT_EQ(*read, session);
  } else {
    EXPECT_EQ(read->info.state, SessionState::Recovered);
    EXPECT_FALSE(progress.finished);
  }
}

// Recovers as the next start does. Files of a recording that had no final name yet are removed
// only when they are old, as another process might be creating them.
void expect_recovered(const fs::path& folder, const RandomSession& session,
                      const ChildProgress& progress) {
  const fs::path file = folder / "s.ttrace";
  ASSERT_TRUE(recover_sessions(folder).has_value());
  if (fs::exists(file)) {
    expect_whole(file, session, progress);
    EXPECT_EQ(file_names(folder), std::set<std::string>{"s.ttrace"});
    return;
  }
  EXPECT_FALSE(progress.created);
  for (const auto& entry : fs::directory_iterator(folder))
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_TRUE(recover_sessions(folder).has_value());
  EXPECT_EQ(file_names(folder), std::set<std::string>{});
}

TEST(KillPoints, BeforeEachChangeOfRecordingAndFinish) {
  const RandomSession session = finished_session();
  ASSERT_GE(session.steps.size(), 4U);
  const ChangeCounts change_counts = count_changes(session);
  int kills = 0, in_finish = 0, before_creation = 0;
  for (std::uint64_t nth = 1; nth <= change_counts.all; ++nth) {
    for (const Torn torn : {Torn::No, Torn::Half}) {
      SCOPED_TRACE(std::to_string(nth) + (torn == Torn::Half ? ", torn" : ""));
      const TempFolder folder;
      Shared<ChildProgress> progress;
      record_and_kill(nth, torn, folder / "s.ttrace", session, *progress);
      ASSERT_FALSE(HasFailure());
      ++kills;
      in_finish += progress->finishing && !progress->finished;
      before_creation += !fs::exists(folder / "s.ttrace");
      if (nth > change_counts.before_end) {
        EXPECT_TRUE(progress->finishing);
      }
      expect_recovered(folder.path(), session, *progress);
    }
  }
  std::printf("%d kills, %d of them in finish(), %d before the file had its name\n", kills,
              in_finish, before_creation);
  EXPECT_GT(in_finish, 10);
  EXPECT_GT(before_creation, 4);
}

TEST(KillPoints, BeforeEachChangeOfRecovery) {
  const RandomSession session = finished_session();
  const ChangeCounts change_counts = count_changes(session);
  int kills = 0;
  // In the middle of the steps, and throughout finish().
  std::vector<std::uint64_t> firsts = {change_counts.before_end / 2};
  for (std::uint64_t nth = change_counts.before_end + 1; nth <= change_counts.all; nth += 3)
    firsts.push_back(nth);
  for (const std::uint64_t first : firsts) {
    for (std::uint64_t second = 1;; ++second) {
      SCOPED_TRACE(std::to_string(first) + ", then " + std::to_string(second));
      const TempFolder folder;
      Shared<ChildProgress> progress;
      record_and_kill(first, Torn::No, folder / "s.ttrace", session, *progress);
      ChildProcess child([&] {
        die_before_change(second, second % 2 == 0 ? Torn::Half : Torn::No);
        return recover_sessions(folder.path()).has_value() ? 0 : 1;
      });
      const int ended = child.wait();
      ASSERT_NE(ended, 1);
      kills += ended == -1;
      expect_recovered(folder.path(), session, *progress);
      ASSERT_FALSE(HasFailure());
      if (ended == 0) break;  // it makes no more changes
    }
  }
  std::printf("%d kills of recoveries\n", kills);
  EXPECT_GT(kills, 20);
}

}  // namespace
}  // namespace tt::test
