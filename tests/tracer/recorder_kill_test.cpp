// The recorder of a process that is killed: what its batching may cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "tests/format/child_process.h"
#include "tests/tracer/traced_model.h"
#include "tracer/recorder.h"

namespace tt::testing {
namespace {

// What a child tells, readable after its death.
struct Told {
  std::atomic<bool> begun{false};             // the file is there
  std::atomic<std::uint32_t> evaluated{0};    // steps that ended and were handed to the recorder
  std::atomic<std::uint32_t> in_the_file{0};  // steps that the recorder said it had committed
};

struct CountSteps final : GenerationListener {
  explicit CountSteps(Told& shared) : told(shared) {}
  // One token a step: the prompt fits one ubatch.
  void on_token(const Token& token, std::string_view) override {
    told.evaluated += token.generated;
  }
  void on_progress(std::uint32_t, std::uint32_t, std::uint32_t) override {}
  void on_text(std::string_view) override {}
  Told& told;
};

int record_until_killed(Engine& engine, const std::filesystem::path& file, Told& told) {
  const RecorderSize size = engine.recorder_size();
  Recorder recorder(
      size.max_ops, size.slot_bytes,
      [&told](const std::string&, const Step&, const KnownGraphPtr&) { ++told.in_the_file; });
  const GenerationRequest request = greedy_tokens(8, 500);
  recorder.begin(engine.describe(request), file);
  told.begun = true;
  CountSteps count(told);
  engine.generate(request, &recorder, count);
  return 0;  // too late: not killed
}

TEST(KilledRecorder, LosesAtMostTheStepInFlightAndTheQueuedOnes) {
  constexpr int kKills = 200;
  // Every buffer of the pool, and the step in flight. A machine that is so busy that the writer
  // does not get to run may have more steps waiting, those without times; so most of the time.
  constexpr int kBound = 64 + 1;
  need_backends();
  ModelOptions options;
  options.path = TT_BUNDLED_MODEL;
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;  // a child that is forked from several threads would have only one
  auto engine = Engine::load(options, context, {});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;

  std::vector<int> lost;
  std::uint64_t steps_found = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE(kill);
    const TempFolder folder;
    const auto file = folder / "s.ttrace";
    Shared<Told> told;
    ChildProcess child([&] { return record_until_killed(**engine, file, *told); });
    while (!told->begun) usleep(100);
    // Moments from the first step on, in no relation to commits: 7,919 is a prime.
    usleep(static_cast<useconds_t>(kill * 7'919 % 80'000));
    child.kill_now();

    const auto recovered = recover_sessions(folder.path());
    ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
    ASSERT_EQ(recovered->size(), 1U);
    ASSERT_EQ(check_session(file).value(), std::vector<std::string>{});
    const std::uint32_t found = recovered->front().steps;
    EXPECT_GE(found, told->in_the_file);
    lost.push_back(static_cast<int>(told->evaluated) - static_cast<int>(found));
    steps_found += found;
  }
  std::ranges::sort(lost);
  std::printf(
      "%d kills, %llu steps found: lost at most %d steps, half of the time at most %d "
      "(bound: %d)\n",
      kKills, static_cast<unsigned long long>(steps_found), std::max(lost.back(), 0),
      std::max(lost[lost.size() / 2], 0), kBound);
  EXPECT_LE(lost[lost.size() / 2], kBound);
  EXPECT_GT(steps_found, 1000U);
}

}  // namespace
}  // namespace tt::testing
