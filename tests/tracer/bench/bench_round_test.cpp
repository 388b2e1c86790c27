// A round of measurements on a real model; and a planted slow op kind is found and named.
#include "tracer/bench/bench_round.h"

#include <gtest/gtest.h>

#include <format>
#include <span>
#include <string>
#include <vector>

#include "analysis/speed/speed_comparison.h"
#include "analysis/speed/speed_rounds.h"
#include "bench/speed/slow_op.h"
#include "tests/support/models/traced_model.h"
#include "tracer/engine/engine_state.h"

namespace tt::test {
namespace {

using Kind = EngineError::Kind;

BenchSetup setup_for(const TempFolder& folder, std::vector<BenchTest> tests) {
  ensure_backends_loaded();
  BenchSetup setup;
  setup.model.path = kTestPaths.bundled_model;
  setup.context.threads = 1;
  setup.tests = std::move(tests);
  setup.block_tokens = 16;
  setup.block_time = {};
  setup.folder = folder.path();
  return setup;
}

TEST(BenchRound, MeasuresAndRecordsEachTest) {
  const TempFolder folder;
  BenchWatch watch;
  BenchSetup setup = setup_for(folder, {{48, 0}, {0, 6}, {4, 2}});
  setup.context.ubatch = 32;
  const auto round = measure_round(setup, watch, 1);
  ASSERT_TRUE(round.has_value()) << round.error().message;
  EXPECT_EQ(round->losses, LossCounters{});
  EXPECT_GT(round->n_params, 1'000'000U);
  const auto reader = SessionReader::open(round->session);
  ASSERT_TRUE(reader.has_value());
  EXPECT_TRUE(check_session(round->session).value().empty());
  ASSERT_EQ(round->tests.size(), 3U);
  // Prompts are split into steps of 32 tokens; blocks of less than 16 tokens are repeated.
  const std::uint32_t steps_per_run[] = {2, 6, 3}, runs[] = {1, 3, 3};
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const BenchTestRound& test = round->tests[i];
    EXPECT_EQ(test.test, setup.tests[i]);
    EXPECT_EQ(test.runs, runs[i]);
    for (std::size_t block = 0; block < 2; ++block) {
      const BenchSteps& steps = test.recorded_steps[block];
      EXPECT_EQ(steps.end.v - steps.first.v, test.runs * steps_per_run[i]);
      EXPECT_GT(test.first_ns[block], 0);
      EXPECT_GT(test.second_ns[block], 0);
      // The steps are those of the block, and take no longer than it.
      const BenchStepTimes& times = test.second_steps[block];
      EXPECT_EQ(times.prompt_ns.size(), test.test.n_prompt > 0 ? test.runs : 0U);
      EXPECT_EQ(times.token_ns.size(), test.runs * test.test.n_gen);
      double steps_ns = 0;
      for (const auto* of : {&times.prompt_ns, &times.token_ns})
        for (const double ns : *of) steps_ns += ns;
      EXPECT_GT(steps_ns, 0);
      EXPECT_LE(steps_ns, test.second_ns[block] * test.runs);
      const auto time = time_of_steps(*reader, steps.first, steps.end);
      ASSERT_TRUE(time.has_value());
      EXPECT_EQ(time->steps_without_times, 0U);
      EXPECT_TRUE(time->conditions.verdict().has_value());
      double ops = 0;
      for (const OpKindTime& kind : time->ops) ops += kind.ns;
      EXPECT_LT(ops, test.recorded_ns[block] * test.runs);
      EXPECT_GT(ops, 0);
      // Graphs were learned before.
      for (std::uint32_t id = steps.first.v; id < steps.end.v; ++id)
        EXPECT_EQ(reader->step(StepId{id})->timing, Timing::Fast) << id;
    }
  }
}

// A block is over when the file has all its steps.
TEST(BenchRound, FinishWaitsForTheFile) {
  const TempFolder folder;
  BenchWatch watch;
  TracedModel traced(two_layer_model("small"));
  Engine& engine = traced.engine();
  const Engine::Impl& loaded = engine.state();
  Probe probe(*loaded.layout);
  RecordedBenchContext context(loaded.model.get(), loaded.params, probe, watch,
                               engine.recorder_size(), engine.describe({}), folder / "a.ttrace");
  ASSERT_TRUE(context.usable());
  std::uint32_t steps = 0;
  for (int block = 0; block < 20; ++block) {
    for (const llama_token token : {1, 2, 3}) {
      ASSERT_TRUE(context.evaluate(std::span(&token, 1)));
      ++steps;
    }
    context.finish();
    EXPECT_EQ(context.next_step(), StepId{steps});
    EXPECT_EQ(SessionReader::open(folder / "a.ttrace")->step_rows().value(), steps);
  }
  EXPECT_EQ(context.end().steps, steps);
}

TEST(BenchRound, ModelsWithoutGenerationHaveOnlyPrompts) {
  const TempFolder folder;
  BenchWatch watch;
  BenchSetup setup = setup_for(folder, {{16, 0}, {0, 4}});
  setup.model.path = two_layer_model("bert");
  const auto round = measure_round(setup, watch, 0);
  ASSERT_TRUE(round.has_value()) << round.error().message;
  ASSERT_EQ(round->tests.size(), 1U);
  EXPECT_EQ(round->tests[0].test, (BenchTest{16, 0}));
}

TEST(BenchRound, SaysWhyItCannotMeasure) {
  const TempFolder folder;
  BenchWatch watch;
  BenchSetup setup = setup_for(folder, {{16, 0}});
  setup.model.path = two_layer_model("t5");
  auto round = measure_round(setup, watch, 0);
  ASSERT_FALSE(round.has_value());
  EXPECT_TRUE(round.error().message.contains("encoder")) << round.error().message;

  setup = setup_for(folder, {{16, 0}});
  setup.model.path = folder / "none.gguf";
  EXPECT_EQ(measure_round(setup, watch, 0).error().kind, Kind::NotFound);

  setup = setup_for(folder, {{16, 0}, {0, 4}});
  int calls = 0;
  round = measure_round(setup, watch, 0, [&](const BenchTest& test) {
    return test.n_gen == 0 || ++calls < 6;  // in the second test
  });
  ASSERT_FALSE(round.has_value());
  EXPECT_EQ(round.error().kind, Kind::Cancelled);
  EXPECT_EQ(calls, 6);
}

// ---------------------------------------------------------------- a planted slow op

constexpr const char* kSlowKind = "MUL_MAT";

SpeedTest measure(const BenchSetup& setup, BenchWatch& watch, std::uint32_t rounds) {
  SpeedTest test;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const auto round = measure_round(setup, watch, i);
    EXPECT_TRUE(round.has_value()) << round.error().message;
    const auto added = add_round(test, round->tests.at(0), *SessionReader::open(round->session));
    EXPECT_TRUE(added.has_value());
  }
  return test;
}

std::string slower_ops(const ComparedTest& test) {
  std::string names;
  for (const ComparedOp& op : test.ops)
    if (op.change && op.change->verdict == SpeedVerdict::Slower) names += op.op + ";";
  return names;
}

// Twice as slow: found on any machine, also beside other tests. bench/speed/verdict_bench.cpp runs
// the series with 5 %.
TEST(BenchVerdict, NamesAnOpThatIsMuchSlower) {
  const TempFolder folder;
  BenchWatch watch;
  BenchSetup setup = setup_for(folder, {{0, 16}});
  bench::SlowOp slow(bench::ops_of_kind(setup, watch, kSlowKind), 1.0);
  const SpeedTest before = measure(setup, watch, 7);
  setup.hook = slow.hook();
  const SpeedTest after = measure(setup, watch, 7);
  const auto compared = compare_speed({before}, {after});
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_EQ(compared[0].change.verdict, SpeedVerdict::Slower) << compared[0].change.ratio;
  EXPECT_EQ(compared[0].ops[0].op, kSlowKind);
  EXPECT_TRUE(slower_ops(compared[0]).contains(kSlowKind)) << slower_ops(compared[0]);
}

}  // namespace
}  // namespace tt::test
