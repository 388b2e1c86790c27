// The recorder of a killed process: what its batching may lose.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/recorder/recorder.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;

// Progress that a child reports, readable after its death.
struct KillProgress {
  std::atomic<bool> begun{false};           // the file exists
  std::atomic<std::uint32_t> evaluated{0};  // graphs that ran
  std::atomic<std::uint32_t> steps{0};      // steps made from them by the recorder
  std::atomic<std::uint32_t> committed{0};  // steps that the recorder reported as committed
};

struct CountSteps final : GenerationListener {
  CountSteps(const Recorder& from, KillProgress& shared) : recorder(from), progress(shared) {}
  // One token per step: the prompt fits one ubatch.
  void on_token(const Token& token, std::string_view) override {
    progress.evaluated += token.generated;
    progress.steps = recorder.next_step().v;
  }
  void on_progress(std::uint32_t, std::uint32_t, std::uint32_t) override {}
  void on_text(std::string_view) override {}
  const Recorder& recorder;
  KillProgress& progress;
};

// Memory of the steps that wait for the slow disk, in bytes.
constexpr std::size_t kWaiting = 128 << 10;
// The steps that may wait: each has the size of a Step at least, and some are merged ones.
constexpr std::size_t kMaxWaitingSteps = kWaiting / sizeof(Step) + Recorder::kBuffers;

// Simulates a disk that takes `stall` microseconds for each step of a batch.
int record_until_killed(Engine& engine, Level level, useconds_t stall,
                        const std::filesystem::path& file, KillProgress& progress) {
  const RecorderSize size = engine.recorder_size();
  Recorder recorder(
      size.max_ops, size.slot_bytes,
      [&](const std::string&, const Step&, const KnownGraphPtr&) {
        ++progress.committed;
        if (stall > 0) usleep(stall);  // the speed of the disk
      },
      nullptr, nullptr, kWaiting);
  GenerationRequest request = greedy_tokens(8, 500);
  request.level = level;
  SessionInfo info = engine.describe(request);
  recorder.begin(info, file);
  progress.begun = true;
  CountSteps count(recorder, progress);
  engine.generate(request, &recorder, count);
  return 0;  // not killed in time
}

// The number of tokens that the child evaluated and that no step in the file covers.
int evaluated_tokens_missing(const std::filesystem::path& file, std::uint32_t evaluated) {
  const auto reader = SessionReader::open(file);
  if (!reader) return 0;
  std::uint32_t found = 0;
  const auto read = reader->for_each_step(StepId{0}, 1'000'000, [&](const Step& step) {
    EXPECT_EQ(step.first_token, found) << "every token before the kill is in a step";
    found += step.n_tokens;
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return std::max(0, static_cast<int>(8 + evaluated) - static_cast<int>(found));
}

TEST(KilledRecorder, LosesAtMostStepInFlightAndQueuedSteps) {
  struct Case {
    const char* what;
    Level level;
    useconds_t stall;
    int kills;
    int steps;  // killed during the first `steps` ones
  };
  const Case cases[] = {
      {"a writer that keeps up", Level::Detailed, 0, 40, 150},
      {"a writer that does not", Level::Detailed, 10'000, 10, 450},
      {"the same without times", Level::Minimal, 10'000, 10, 450},
  };
  ensure_backends_loaded();
  ModelOptions options;
  options.path = kTestPaths.bundled_model;
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;  // after fork() the child has only one thread
  auto engine = Engine::load(options, context, {});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;

  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<int> lost;
    int tokens_lost = 0;
    std::uint64_t steps_found = 0;
    for (int kill = 0; kill < c.kills; ++kill) {
      SCOPED_TRACE(kill);
      const TempFolder folder;
      const auto file = folder / "s.ttrace";
      Shared<KillProgress> progress;
      ChildProcess child(
          [&] { return record_until_killed(**engine, c.level, c.stall, file, *progress); });
      // After some step, at a random moment. Not aligned with commits: 7,919 is prime.
      const auto moment = static_cast<std::uint32_t>(kill * 7'919 % c.steps);
      ASSERT_TRUE(
          wait_until([&] { return progress->begun && progress->evaluated >= moment; }, 60s, 50us));
      usleep(static_cast<useconds_t>(kill * 7'919 % 1'000));
      child.kill_now();

      const auto recovered = recover_sessions(folder.path());
      ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
      ASSERT_EQ(recovered->size(), 1U);
      ASSERT_EQ(check_session(file).value(), std::vector<std::string>{});
      const std::uint32_t found = recovered->front().steps;
      EXPECT_GE(found, progress->committed);
      lost.push_back(static_cast<int>(progress->steps) - static_cast<int>(found));
      EXPECT_LE(lost.back(), static_cast<int>(kMaxWaitingSteps));
      tokens_lost = std::max(tokens_lost, evaluated_tokens_missing(file, progress->evaluated));
      steps_found += found;
    }
    std::ranges::sort(lost);
    std::printf(
        "%s: %d kills, %llu steps found; beside the one in flight, lost at most %d steps "
        "(bound: %zu), half of the time at most %d; at most %d tokens\n",
        c.what, c.kills, static_cast<unsigned long long>(steps_found), std::max(lost.back(), 0),
        kMaxWaitingSteps, std::max(lost[lost.size() / 2], 0), tokens_lost);
    EXPECT_GT(steps_found, static_cast<unsigned>(c.kills));
  }
}

}  // namespace
}  // namespace tt::test
