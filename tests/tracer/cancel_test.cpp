// Stopping at once, wherever the engine is, and leaving nothing wrong behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <format>
#include <functional>
#include <optional>
#include <thread>

#include "tests/tracer/traced_model.h"

namespace tt::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Wide enough that one op of its prompt is little against the four ubatches of it.
std::filesystem::path slow_model() {
  modelgen::ModelSpec spec;
  spec.shape = "small";
  spec.dims.embd = 512;
  spec.dims.ff = 2048;
  spec.dims.layers = 4;
  spec.quant = "q8_0";
  return generated_model(spec);
}

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

ContextOptions wide_context() {
  ContextOptions context = TracedModel::small_context();
  context.context = 2048;
  context.batch = 1024;
  context.ubatch = 256;
  return context;
}

// Cancels as soon as `when` says so, from another thread; tells how long it took.
struct Canceller {
  Canceller(Engine& engine, std::function<bool(const StepBuffer&)> when)
      : thread([this, &engine, when = std::move(when)] {
          while (!give_up) {
            const StepBuffer* step = engine.probe().in_flight();
            if (step != nullptr && when(*step)) {
              asked = Clock::now();
              engine.cancel();
              return;
            }
            std::this_thread::yield();
          }
        }) {}
  ~Canceller() {
    give_up = true;
    thread.join();
  }
  std::atomic<bool> give_up{false};
  std::atomic<Clock::time_point> asked{Clock::time_point{}};
  std::thread thread;
};

TEST(Cancel, EndsALongPromptAtOnceAndLeavesCleanMemory) {
  for (const bool exact : {false, true}) {
    for (const bool known : {false, true}) {
      SCOPED_TRACE(std::format("exact {}, known graph {}", exact, known));
      TracedModel traced(slow_model(), wide_context());
      GenerationRequest request = greedy_tokens(1024, 5);
      request.exact_timing = exact;
      // The same prompt, not cancelled: by this engine, or by one that leaves it nothing to know.
      const double whole_ms = [&] {
        std::optional<TracedModel> other;
        if (!known) other.emplace(slow_model(), wide_context());
        const auto begin = Clock::now();
        const auto whole = (known ? traced : *other).run(request);
        EXPECT_EQ(whole.steps().size(), 4U + 4U);  // four ubatches, four decodes
        return milliseconds(Clock::now() - begin);
      }();

      // Exactly timed, what the graphs of the four have in common has run before they differ:
      // then the one that ran last is recognised. Let that be the first.
      if (known && exact) traced.run(greedy_tokens(257, 1));

      TracedModel::Run run;
      double took_ms = 0;
      {
        Canceller canceller(traced.engine(), [&](const StepBuffer& step) {
          return step.ops_done.load() > 20 && step.ops_done.load() < 60;
        });
        run = traced.run(request);
        took_ms = milliseconds(Clock::now() - canceller.asked.load());
      }
      EXPECT_EQ(run.result.reason, StopReason::Cancelled);
      EXPECT_EQ(run.info.state, SessionState::Cancelled);
      EXPECT_EQ(run.result.generated, 0U);
      const auto steps = run.steps();
      ASSERT_EQ(steps.size(), 1U) << "of four";
      EXPECT_TRUE(steps[0].aborted);
      if (known) {
        // What ran until then is there, and only that.
        EXPECT_GE(steps[0].op_ends.size(), 20U);
        EXPECT_LT(steps[0].op_ends.size(), graph_of(run.reader(), steps[0])->ops.size());
      }
      EXPECT_TRUE(check_session(run.file).value().empty());
      std::printf("cancelled a prompt (%s, %s) after %.1f ms of %.0f\n", exact ? "exact" : "fast",
                  known ? "known" : "new", took_ms, whole_ms);
      // No ubatch is finished first. (Seen on a busy machine: a twentieth.)
      EXPECT_LT(took_ms / whole_ms, 1.0 / 4);

      // The next request shares the prefix, and must not find what was left of it.
      GenerationRequest next = greedy_tokens(60, 5);
      next.reuse_prefix = true;
      const auto after = traced.run(next);
      EXPECT_EQ(after.result.reused_tokens, 0U);
      TracedModel fresh(slow_model(), wide_context());
      EXPECT_EQ(after.heard.tokens, fresh.run(next).heard.tokens);
    }
  }
}

TEST(Cancel, EndsAGenerationAndTheNextContinuesIt) {
  modelgen::ModelSpec spec;
  spec.shape = "small";
  TracedModel traced(generated_model(spec));
  GenerationRequest request = greedy_tokens(20, 400);
  request.reuse_prefix = true;
  const auto run = traced.run(request, [&](std::uint32_t generated) {
    if (generated == 10) traced.engine().cancel();
  });
  EXPECT_EQ(run.result.reason, StopReason::Cancelled);
  EXPECT_GE(run.result.generated, 10U);
  EXPECT_LE(run.result.generated, 11U);
  EXPECT_TRUE(check_session(run.file).value().empty());

  const auto next = traced.run(greedy_tokens(20, 15));
  EXPECT_EQ(next.result.reason, StopReason::Length);
  for (std::size_t i = 0; i < 20 + run.result.generated; ++i) {
    EXPECT_EQ(next.heard.tokens[i].id, run.heard.tokens[i].id) << i;
  }
}

// A cancel that comes at any op, also between two that are cut apart, is never
// taken for a whole evaluation.
TEST(Cancel, AtAnyOpLeavesCleanMemory) {
  modelgen::ModelSpec spec;
  spec.shape = "moe";
  const auto model = generated_model(spec);
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;
  TracedModel traced(model, context);
  TracedModel fresh(model, context);
  GenerationRequest request = greedy_tokens(60, 3);
  const auto expected = fresh.run(request).heard.tokens;
  request.reuse_prefix = true;
  int inside = 0;
  for (std::uint32_t round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    request.exact_timing = round % 2 == 1;
    {
      GenerationRequest endless = request;
      endless.max_tokens = 400;
      Canceller canceller(traced.engine(),
                          [&](const StepBuffer& step) { return step.ops_done.load() > round * 5; });
      const auto run = traced.run(endless);
      ASSERT_EQ(run.result.reason, StopReason::Cancelled);
      const auto steps = run.steps();
      inside += !steps.empty() && steps.back().aborted;
    }
    const auto after = traced.run(request);
    ASSERT_EQ(after.heard.tokens.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(after.heard.tokens[i].id, expected[i].id) << i;
    }
  }
  std::printf("%d of 40 were inside a step\n", inside);
}

TEST(Cancel, BeforeTheFirstStepEvaluatesNothingMore) {
  modelgen::ModelSpec spec;
  spec.shape = "small";
  TracedModel traced(generated_model(spec));
  Heard heard;
  traced.engine().reset_cancel();
  traced.engine().cancel();
  const auto result = traced.engine().generate(greedy_tokens(200, 50), nullptr, heard);
  EXPECT_EQ(result.reason, StopReason::Cancelled);
  EXPECT_EQ(result.generated, 0U);
}

}  // namespace
}  // namespace tt::testing
