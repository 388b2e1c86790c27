// A recording that is killed at any moment: while its file is created, during steps, and during
// finish().
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/kill_points.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/recorder/recorder.h"

namespace tt::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using namespace std::chrono_literals;

// The file change before which the child is killed, counted from the start of finish(); 0: none.
struct KillPoint {
  std::uint64_t change = 0;
  Torn torn = Torn::No;
};

// Progress that a child reports, readable after its death.
struct RecordingProgress {
  std::atomic<bool> started{false}, begun{false}, finishing{false}, finished{false};
  std::atomic<Clock::duration> made{}, generated{}, all{};  // durations since the start
  std::atomic<std::uint32_t> committed{0};  // steps that the recorder reported as committed
};

int record(Engine& engine, const std::filesystem::path& file, KillPoint kill_point,
           RecordingProgress& progress) {
  const auto start = Clock::now();
  const auto since = [&] { return Clock::now() - start; };
  progress.started = true;
  const RecorderSize size = engine.recorder_size();
  Recorder recorder(
      size.max_ops, size.slot_bytes,
      [&](const std::string&, const Step&, const KnownGraphPtr&) { ++progress.committed; });
  const GenerationRequest request = greedy_tokens(8, 24);
  SessionInfo info = engine.describe(request);
  recorder.begin(info, file);
  progress.made = since();
  progress.begun = true;
  CapturedOutput captured;
  engine.complete(info, engine.generate(request, &recorder, captured));
  progress.generated = since();
  if (kill_point.change > 0) die_before_change(kill_point.change, kill_point.torn);
  progress.finishing = true;
  const RecordingResult result = recorder.finish(info);
  progress.all = since();
  progress.finished = true;
  return result.error.empty() ? 0 : 1;
}

class KilledRecording : public ::testing::Test {
 protected:
  KilledRecording() {
    ensure_backends_loaded();
    ModelOptions options;
    options.path = kTestPaths.bundled_model;
    ContextOptions context = TracedModel::small_context();
    context.threads = 1;  // after fork() the child has only one thread
    engine_ = Engine::load(options, context, {}).value();
    const TempFolder folder;
    Shared<RecordingProgress> progress;
    ChildProcess child([&] { return record(*engine_, folder / "s.ttrace", {}, *progress); });
    EXPECT_EQ(child.wait(), 0);
    made_ = progress->made;
    generated_ = progress->generated;
    all_ = progress->all;
    tokens_ = tokens_in(folder / "s.ttrace");
    EXPECT_GT(tokens_, 24U);
  }

  static std::uint32_t tokens_in(const std::filesystem::path& file) {
    std::uint32_t tokens = 0;
    const auto read =
        SessionReader::open(file)->for_each_step(StepId{0}, 1'000'000, [&](const Step& step) {
          EXPECT_EQ(step.first_token, tokens) << "every token before the kill is in a step";
          tokens += step.n_tokens;
          return true;
        });
    EXPECT_TRUE(read.has_value());
    return tokens;
  }

  // Recovers as the next start does.
  void expect_recovered(const std::filesystem::path& folder, const RecordingProgress& progress) {
    const auto file = folder / "s.ttrace";
    const auto recovered = recover_sessions(folder);
    ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
    if (!std::filesystem::exists(file)) {
      EXPECT_FALSE(progress.begun);
      return;
    }
    ASSERT_EQ(check_session(file).value(), std::vector<std::string>{});
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    EXPECT_GE(reader->step_count().value(), progress.committed);
    const std::uint32_t tokens = tokens_in(file);
    const SessionState state = reader->info()->state;
    if (state == SessionState::Done) {
      EXPECT_TRUE(progress.finishing);
      EXPECT_EQ(tokens, tokens_);
    } else {
      EXPECT_EQ(state, SessionState::Recovered);
      EXPECT_FALSE(progress.finished);
      EXPECT_EQ(recovered->size(), 1U);
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      EXPECT_EQ(entry.path(), file);
  }

  std::unique_ptr<Engine> engine_;
  Clock::duration made_{}, generated_{}, all_{};  // durations of a run that is not killed
  std::uint32_t tokens_ = 0;                      // evaluated by its steps
};

TEST_F(KilledRecording, IsRecoveredAfterKillAtRandomMoments) {
  constexpr int kKills = 200;
  enum Moment { Making, InSteps, InTheEnd, After };
  std::array<int, 4> kills{};
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE(kill);
    Dice dice(static_cast<std::uint64_t>(kill));
    const auto some = [&](Clock::duration most) {
      const auto us = std::chrono::duration_cast<microseconds>(most).count();
      return static_cast<useconds_t>(dice.below(static_cast<std::uint64_t>(us) + 1));
    };
    const TempFolder folder;
    Shared<RecordingProgress> progress;
    ChildProcess child([&] { return record(*engine_, folder / "s.ttrace", {}, *progress); });
    // The short phases are as likely as the long one.
    const bool in_finish = kill % 4 == 0;
    ASSERT_TRUE(wait_until(
        [&] { return (in_finish ? progress->finishing : progress->started).load(); }, 60s, 20us));
    // A random moment of the phase.
    usleep(some(in_finish ? all_ - generated_ : kill % 4 == 1 ? made_ : all_));
    child.kill_now();
    ++kills[progress->finished    ? After
            : progress->finishing ? InTheEnd
            : progress->begun     ? InSteps
                                  : Making];
    expect_recovered(folder.path(), *progress);
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%d kills: %d while the file was made, %d in steps, %d in finish(), %d after\n",
              kKills, kills[Making], kills[InSteps], kills[InTheEnd], kills[After]);
}

TEST_F(KilledRecording, IsRecoveredAfterKillBeforeEachChangeOfFinish) {
  int kills = 0;
  for (const Torn torn : {Torn::No, Torn::Half}) {
    for (std::uint64_t change = 1;; ++change) {
      SCOPED_TRACE(std::to_string(change) + (torn == Torn::Half ? ", torn" : ""));
      const TempFolder folder;
      Shared<RecordingProgress> progress;
      ChildProcess child([&] {
        return record(*engine_, folder / "s.ttrace", {.change = change, .torn = torn}, *progress);
      });
      const int ended = child.wait();
      expect_recovered(folder.path(), *progress);
      ASSERT_FALSE(HasFailure());
      if (ended != -1) {
        EXPECT_EQ(ended, 0);
        break;  // it makes no more changes
      }
      EXPECT_FALSE(progress->finished);
      ++kills;
    }
  }
  std::printf("%d kills in finish()\n", kills);
  EXPECT_GT(kills, 30);
}

}  // namespace
}  // namespace tt::test
