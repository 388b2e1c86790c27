// The recorder on a full or slow disk: generation continues, committed steps remain, and the
// failure is reported.
#include "tracer/recorder/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <latch>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/small_disk.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

TEST(Recorder, FullDiskEndsRecordingButNotGeneration) {
  ensure_backends_loaded();
  const SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  modelgen::ModelSpec spec;
  ModelOptions options;
  options.path = generated_model(spec);
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;
  auto engine = Engine::load(options, context, {});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;

  std::size_t seen = 0;
  const RecorderSize size = (*engine)->recorder_size();
  Recorder recorder(size.max_ops, size.slot_bytes,
                    [&](const std::string&, const Step&, const KnownGraphPtr&) { ++seen; });
  const GenerationRequest request = greedy_tokens(8, 500);
  SessionInfo info = (*engine)->describe(request);
  const auto file = disk / "s.ttrace";
  recorder.begin(info, file);
  CapturedOutput captured;
  const GenerationResult result = (*engine)->generate(request, &recorder, captured);
  (*engine)->complete(info, result);
  const RecordingResult recording = recorder.finish(info);

  EXPECT_EQ(result.reason, StopReason::Length) << result.error;
  EXPECT_EQ(result.generated, 500U);
  const std::uint32_t handed = recorder.next_step().v;
  EXPECT_EQ(seen, handed) << "live listeners get every step, written or not";
  EXPECT_NE(recording.error.find("full"), std::string::npos) << recording.error;
  EXPECT_GT(recording.losses.steps_not_written, 0U);

  const auto reader = SessionReader::open(file);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  const auto steps = reader->step_count();
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(*steps + recording.losses.steps_not_written, handed) << "nothing committed is lost";
  const auto ended = reader->info();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->state, SessionState::Failed);
  EXPECT_NE(ended->error.find("full"), std::string::npos) << ended->error;
  std::printf("%u of %u steps fit 1 MiB; \"%s\"\n", *steps, handed, recording.error.c_str());

  // The same recorder works for the next session.
  const TempFolder roomy;
  recorder.begin(info, roomy.path() / "next.ttrace");
  const GenerationResult next = (*engine)->generate(greedy_tokens(8, 4), &recorder, captured);
  EXPECT_EQ(next.reason, StopReason::Length);
  EXPECT_TRUE(recorder.finish(info).error.empty());
}

// What the disk takes to create the file is before the session, also in a file that is never
// finished.
TEST(Recorder, TheSessionStartsWhenItsFileIsThere) {
  const TempFolder folder;
  const std::filesystem::path file = folder / "s.ttrace";
  Recorder recorder(16, 1024, [](const std::string&, const Step&, const KnownGraphPtr&) {});
  SessionInfo info = SmallSession::small_info();
  info.start_utc_ns = 1;
  recorder.begin(info, file);
  EXPECT_TRUE(std::filesystem::exists(file));
  recorder.flush();
  const auto reader = SessionReader::open(file);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->info()->start_utc_ns, info.start_utc_ns);
  EXPECT_GT(info.start_utc_ns, 1);
}

// Without flash attention, a list of cells has one number per element of V, which may be wider
// than the model's embeddings; with a window there are two such lists.
TEST(Recorder, HasCapacityForCellsOfFullUbatch) {
  ContextOptions context = TracedModel::small_context();
  context.batch = context.ubatch = 512;
  context.flash_attention = FlashAttention::Off;
  TracedModel traced(generated_model({.shape = "gpt-oss-like",
                                      .dims = {.layers = 2, .heads = 16, .kv_heads = 16}}),
                     context);
  const auto run = traced.run(greedy_tokens(510, 1));
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  EXPECT_EQ(run.recording.losses.slot_values_dropped, 0U);
  const auto steps = run.steps();
  const auto graph = graph_of(run.reader(), steps[0]);
  std::size_t most = 0;
  for (std::size_t s = 0; s < graph->slots.size(); ++s)
    if (graph->slots[s].kind == SlotKind::CachePositions)
      most = std::max(most, steps[0].slots[s].ints.size());
  EXPECT_EQ(most, 510U * 16 * 64) << "cells times elements";
}

// A writer that gets no processor: it stalls from the first commit until the first 300 of 400
// tokens are generated.
class StalledWriter : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kTokens = 400, kStalled = 300;

  struct Recorded {
    TempFolder folder;
    GenerationResult result;
    RecordingResult recording;
    std::vector<Step> delivered, steps;
    std::uint32_t handed = 0;           // steps of the recorder
    std::uint32_t handed_in_stall = 0;  // before the writer went on
  };

  StalledWriter() {
    ensure_backends_loaded();
    ModelOptions options;
    options.path = kTestPaths.bundled_model;
    ContextOptions context = TracedModel::small_context();
    context.context = 500;
    auto engine = Engine::load(options, context, {});
    if (!engine) throw std::runtime_error(engine.error().message);
    engine_ = *std::move(engine);
  }

  void record(Level level, std::size_t max_waiting_bytes, Recorded& out) {
    const auto file = out.folder / "s.ttrace";
    std::latch stalled(1);
    const RecorderSize size = engine_->recorder_size();
    Recorder recorder(
        size.max_ops, size.slot_bytes,
        [&](const std::string&, const Step& step, const KnownGraphPtr&) {
          stalled.wait();
          out.delivered.push_back(step);
        },
        nullptr, nullptr, max_waiting_bytes);
    GenerationRequest request = greedy_tokens(8, kTokens);
    request.level = level;
    SessionInfo info = engine_->describe(request);
    recorder.begin(info, file);
    CapturedOutput captured;
    captured.then = [&](std::uint32_t generated) {
      if (generated != kStalled) return;
      out.handed_in_stall = recorder.next_step().v;
      stalled.count_down();
    };
    out.result = engine_->generate(request, &recorder, captured);
    engine_->complete(info, out.result);
    out.recording = recorder.finish(info);
    out.handed = recorder.next_step().v;
    ASSERT_EQ(out.result.reason, StopReason::Length) << out.result.error;
    EXPECT_EQ(out.result.steps, kTokens) << "graphs that ran: the last token is not evaluated";

    ASSERT_EQ(check_session(file).value(), std::vector<std::string>{});
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    EXPECT_EQ(reader->token_count().value(), 8 + kTokens);
    EXPECT_EQ(reader->step_count().value(), out.handed);
    std::uint32_t next_token = 0;
    Ns last_end{};
    const auto read = reader->for_each_step(StepId{0}, 1'000'000, [&](const Step& step) {
      EXPECT_EQ(step.first_token, next_token) << "every token is in a step";
      EXPECT_GE(step.begin, last_end);
      EXPECT_GT(step.end, step.begin);
      next_token += step.n_tokens;
      last_end = step.end;
      EXPECT_EQ(step, out.delivered.at(step.id.v));
      out.steps.push_back(step);
      return true;
    });
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(next_token, 8 + kTokens - 1);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(StalledWriter, LosesNothingWhileTheStepsFitTheMemory) {
  for (const Level level : {Level::Detailed, Level::Minimal}) {
    SCOPED_TRACE(to_text(level));
    Recorded run;
    ASSERT_NO_FATAL_FAILURE(record(level, Recorder::kMaxWaitingBytes, run));
    EXPECT_EQ(run.recording.losses, LossCounters{});
    EXPECT_EQ(run.handed_in_stall, kStalled) << "one step per token: none was merged";
    EXPECT_EQ(run.handed, kTokens);
    EXPECT_EQ(std::ranges::count(run.steps, Phase::Generate, &Step::phase), kTokens - 1);
    const auto with_times =
        std::ranges::count_if(run.steps, [](const Step& s) { return !s.op_ends.empty(); });
    EXPECT_EQ(with_times, level == Level::Detailed ? kTokens : 0U);
  }
}

TEST_F(StalledWriter, DropsTimesButNoTokensBeyondTheMemory) {
  constexpr std::size_t kBytes = 64 << 10;
  for (const Level level : {Level::Detailed, Level::Minimal}) {
    SCOPED_TRACE(to_text(level));
    Recorded run;
    ASSERT_NO_FATAL_FAILURE(record(level, kBytes, run));
    // What waits has the size of a Step at least; the first batch is in the file.
    EXPECT_LE(run.handed_in_stall, kBytes / sizeof(Step) + 2 * Recorder::kBuffers);
    std::uint32_t dropped_tokens = 0, joined = 0;
    for (const Step& step : run.steps) {
      if (step.dropped) dropped_tokens += step.n_tokens;
      joined += step.phase == Phase::Generate && step.n_tokens > 1;
    }
    EXPECT_GT(joined, 0U);
    EXPECT_GT(dropped_tokens, 100U);
    EXPECT_EQ(run.recording.losses, LossCounters{.steps_without_times = dropped_tokens});
    std::printf("%s: %u evaluations became %u steps, %u of them joined; %u without times\n",
                to_text(level), run.result.steps, run.handed, joined, dropped_tokens);
  }
}

}  // namespace
}  // namespace tt::test
