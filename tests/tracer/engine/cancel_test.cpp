// Cancellation is immediate at any point in the engine, and leaves consistent memory and files.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <format>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "analysis/common/op_info.h"
#include "analysis/findings/session_figures.h"
#include "analysis/index/session_index.h"
#include "analysis/report/validation.h"
#include "tests/support/models/traced_model.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

using Clock = std::chrono::steady_clock;

// Wide enough that one op takes little time compared with the four ubatches of the prompt.
std::filesystem::path slow_model() {
  modelgen::ModelSpec spec;
  spec.shape = "small";
  spec.dims.embd = 512;
  spec.dims.ff = 2048;
  spec.dims.layers = 4;
  spec.quant = "q8_0";
  return generated_model(spec);
}

ContextOptions wide_context() {
  ContextOptions context = TracedModel::small_context();
  context.context = 2048;
  context.batch = 1024;
  context.ubatch = 256;
  return context;
}

// Calls cancel() from another thread as soon as `when` returns true, and records the engine's
// position. The latency is then measured in ops, independent of the load of the machine.
struct Canceller {
  Canceller(Engine& engine, std::function<bool(const StepBuffer&)> when)
      : thread([this, &engine, when = std::move(when)] {
          while (!give_up) {
            const StepBuffer* step = engine.probe().in_flight();
            if (step != nullptr && when(*step)) {
              engine.cancel();
              cancelled_at = Clock::now();
              follow(engine.probe(), *step);
              return;
            }
            std::this_thread::yield();
          }
        }) {}
  ~Canceller() {
    give_up = true;
    if (thread.joinable()) thread.join();
  }
  // After cancel() has returned: records the id of the step in flight, its finished ops, and
  // the last count seen before the step ended. If no step is in flight, `seen` was the last
  // one, as no step begins after a cancel.
  void follow(const Probe& probe, const StepBuffer& seen) {
    const StepBuffer* step = probe.in_flight();
    if (step == nullptr) step = &seen;
    const auto generation = step->generation.load();
    step_id = step->step_id.load();
    ops_at_last = ops_at_cancel = step->ops_done.load();
    while (!give_up && probe.in_flight() == step && step->generation.load() == generation) {
      ops_at_last = std::max(ops_at_last, step->ops_done.load());
      std::this_thread::yield();
    }
  }
  std::atomic<bool> give_up{false};
  Clock::time_point cancelled_at;  // valid once `thread` is joined, as are the members below
  std::uint32_t step_id = 0;
  std::uint32_t ops_at_cancel = 0;
  std::uint32_t ops_at_last = 0;
  std::thread thread;
};

TEST(Cancel, StopsLongPromptAtOnceAndLeavesCleanMemory) {
  for (const bool exact : {false, true}) {
    for (const bool known : {false, true}) {
      SCOPED_TRACE(std::format("exact {}, known graph {}", exact, known));
      TracedModel traced(slow_model(), wide_context());
      GenerationRequest request = greedy_tokens(1024, 5);
      request.exact_timing = exact;
      // A graph is known after a whole run of the same prompt: four ubatches, four decodes.
      if (known) {
        EXPECT_EQ(traced.run(request).steps().size(), 4U + 4U);
      }

      // With exact timing, the four graphs are identical up to the first difference, and the
      // last used graph is recognized first. This run makes the first graph the last used one.
      if (known && exact) traced.run(greedy_tokens(257, 1));

      Canceller canceller(traced.engine(),
                          [](const StepBuffer& step) { return step.ops_done.load() > 20; });
      const auto run = traced.run(request);
      const auto ended = Clock::now();
      canceller.give_up = true;
      canceller.thread.join();
      EXPECT_EQ(run.result.reason, StopReason::Cancelled);
      EXPECT_EQ(run.info.state, SessionState::Cancelled);
      EXPECT_EQ(run.result.generated, 0U);
      // The step that ran is the last one, and its op is the last one too (the next may have
      // begun while the canceller sampled).
      const auto steps = run.steps();
      ASSERT_EQ(steps.size(), canceller.step_id + 1);
      EXPECT_LE(steps.size(), 4U);
      EXPECT_TRUE(steps.back().aborted);
      EXPECT_LE(canceller.ops_at_last, canceller.ops_at_cancel + 2);
      // The file contains exactly the ops that ran; a graph that was still being learned
      // contains no others either.
      const auto graph = graph_of(run.reader(), steps.back());
      EXPECT_GE(steps.back().op_ends.size(), 20U);
      EXPECT_LE(steps.back().op_ends.size(), canceller.ops_at_cancel + 2);
      if (known) {
        EXPECT_LT(steps.back().op_ends.size(), graph->ops.size());
      } else {
        EXPECT_NE(steps.back().timing, Timing::Exact);
        EXPECT_EQ(steps.back().op_ends.size(), graph->ops.size());
      }
      EXPECT_TRUE(check_session(run.file).value().empty());
      std::printf(
          "cancelled a prompt (%s, %s) in step %u at op %u, over %u ops and %.1f ms later\n",
          exact ? "exact" : "fast", known ? "known" : "new", canceller.step_id,
          canceller.ops_at_cancel, canceller.ops_at_last - canceller.ops_at_cancel,
          std::chrono::duration<double, std::milli>(ended - canceller.cancelled_at).count());

      // The next request shares the prefix, and must not find what was left of it.
      GenerationRequest next = greedy_tokens(60, 5);
      next.reuse_prefix = true;
      const auto after = traced.run(next);
      EXPECT_EQ(after.result.reused_tokens, 0U);
      TracedModel fresh(slow_model(), wide_context());
      EXPECT_EQ(after.captured.tokens, fresh.run(next).captured.tokens);
    }
  }
}

TEST(Cancel, StopsGenerationAndNextRequestContinuesIt) {
  TracedModel traced(generated_model({.shape = "small"}));
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
    EXPECT_EQ(next.captured.tokens[i].id, run.captured.tokens[i].id) << i;
  }
}

// A cancel at any op, also between two ops that run separately, is never recorded as a whole
// evaluation.
TEST(Cancel, CancelAtAnyOpLeavesCleanMemory) {
  const auto model = generated_model({.shape = "moe"});
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;
  TracedModel traced(model, context);
  TracedModel fresh(model, context);
  GenerationRequest request = greedy_tokens(60, 3);
  const auto expected = fresh.run(request).captured.tokens;
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
    ASSERT_EQ(after.captured.tokens.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(after.captured.tokens[i].id, expected[i].id) << i;
    }
  }
  std::printf("%d of 40 were inside a step\n", inside);
}

// The ops that ran in a step and their accesses, by name.
std::vector<std::string> executed_ops(const GraphTemplate& graph, const Step& step) {
  std::vector<std::string> lines;
  for (OpId op{0}; op.v < step.op_ends.size(); ++op.v) {
    const TensorId output = graph.node(graph.op(op).last()).output;
    lines.push_back(op_name(graph, graph.op(op)) + " " + graph.tensor(output).name);
  }
  for_each_access(graph, accesses_of(graph), step, [&](const StepAccess& access) {
    lines.push_back(std::format("{} {} {} {} {} {}", access.op.v, graph.tensor(access.tensor).name,
                                access.write, access.touched.v, access.expert,
                                access.range.offset));
  });
  return lines;
}

// Each part of a recording agrees with the others; returns what is said of the layers of graphs.
std::string expect_valid(const std::filesystem::path& session) {
  const auto validation = validate(session);
  EXPECT_TRUE(validation.has_value()) << validation.error().message;
  if (!validation) return "";
  for (const CheckResult& check : validation->checks)
    for (const std::string& wrong : check.evidence)
      ADD_FAILURE() << to_text(check.check) << ": " << wrong;
  EXPECT_TRUE(validation->passed());
  return validation->checks.at(static_cast<std::size_t>(Check::Layers)).summary;
}

// The executed part of a graph that was never completed is valid, and is recorded as in the
// complete graph.
TEST(Cancel, KeepsExecutedPartOfNewGraph) {
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;
  std::set<std::size_t> lengths;
  for (const char* shape : {"small", "moe", "mamba"}) {
    TracedModel traced(generated_model({.shape = shape}), context);
    std::size_t tokens = 40;  // a new graph each time
    for (const bool exact : {false, true}) {
      for (const std::uint32_t after : {0U, 1U, 9U, 30U, 77U}) {
        SCOPED_TRACE(std::format("{}, exact {}, after {} ops", shape, exact, after));
        GenerationRequest request = greedy_tokens(++tokens, 1);
        request.exact_timing = exact;
        Canceller canceller(traced.engine(),
                            [&](const StepBuffer& step) { return step.ops_done.load() > after; });
        const auto cut = traced.run(request);
        canceller.give_up = true;
        canceller.thread.join();
        EXPECT_TRUE(check_session(cut.file).value().empty());
        EXPECT_EQ(cut.recording.losses, LossCounters{});
        const Step step = cut.steps().at(0);
        const std::string layers = expect_valid(cut.file);
        if (!step.aborted) continue;  // the step ended before the cancel
        EXPECT_TRUE(layers.ends_with("; the template of a cancelled step is partial")) << layers;
        // What is said of it is of the ops that ran.
        const auto index = SessionIndex::build(cut.reader());
        ASSERT_TRUE(index.has_value());
        const auto figures = gather_session_figures(*index, cut.reader());
        ASSERT_TRUE(figures.has_value());
        EXPECT_TRUE(figures->only_interrupted);
        EXPECT_NE(step.timing, Timing::Exact);
        EXPECT_TRUE(std::ranges::is_sorted(step.op_ends));
        const auto begun = graph_of(cut.reader(), step);
        ASSERT_NE(begun, nullptr);
        ASSERT_EQ(begun->ops.size(), step.op_ends.size());
        EXPECT_GT(begun->ops.size(), after);
        lengths.insert(begun->ops.size());

        const auto run = traced.run(request);
        Step whole = run.steps().at(0);
        const auto graph = graph_of(run.reader(), whole);
        ASSERT_LT(begun->ops.size(), graph->ops.size());
        whole.op_ends.resize(begun->ops.size());
        whole.aborted = true;
        EXPECT_EQ(executed_ops(*begun, step), executed_ops(*graph, whole));
      }
    }
  }
  EXPECT_GT(lengths.size(), 3U);
}

TEST(Cancel, BeforeFirstStepEvaluatesNothing) {
  TracedModel traced(generated_model({.shape = "small"}));
  CapturedOutput captured;
  traced.engine().reset_cancel();
  traced.engine().cancel();
  const auto result = traced.engine().generate(greedy_tokens(200, 50), nullptr, captured);
  EXPECT_EQ(result.reason, StopReason::Cancelled);
  EXPECT_EQ(result.generated, 0U);
}

}  // namespace
}  // namespace tt::test
