// Where the time of a step goes, of recorded sessions: the parts add up, what is planted between
// two parts is in none of them, and a graph is built when its shape is new.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "analysis/tables/session_conditions.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;

std::uint64_t total(const std::vector<Step>& steps, StepConditions::Value StepConditions::* part) {
  return std::accumulate(steps.begin(), steps.end(), std::uint64_t{0},
                         [&](std::uint64_t sum, const Step& step) {
                           EXPECT_TRUE((step.conditions.*part).has_value()) << step.id.v;
                           return sum + (step.conditions.*part).value_or(0);
                         });
}

void expect_parts_add_up(const Step& step) {
  SCOPED_TRACE(step.id.v);
  const StepConditions& c = step.conditions;
  ASSERT_TRUE(c.sample_ns && c.detokenize_ns && c.build_ns && c.evaluate_ns && c.interval_ns);
  const auto duration = static_cast<std::uint64_t>((step.end - step.begin).v);
  EXPECT_LE(*c.build_ns + *c.evaluate_ns, duration);
  EXPECT_LE(*c.sample_ns + *c.detokenize_ns + *c.build_ns + *c.evaluate_ns, *c.interval_ns);
  EXPECT_GT(*c.build_ns, 0U);
  if (step.op_ends.empty()) return;
  // The clock of ops may differ from this one by a microsecond.
  const auto ops = static_cast<std::uint64_t>((step.op_ends.back() - step.first_op).v);
  EXPECT_GE(*c.evaluate_ns + 1'000, ops) << "contains the ops";
}

TEST(StepTimes, PartsAddUpAndGraphsAreBuiltForNewShapes) {
  TracedModel model(two_layer_model("small"));
  // The first 64 tokens, the other 36, then single tokens: 3 shapes while the attended part of
  // the cache does not grow (it does with every 256 tokens).
  const auto run = model.run(greedy_tokens(100, 40));
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  const std::vector<Step> steps = run.steps();
  ASSERT_EQ(steps.size(), 41U);
  for (const Step& step : steps) {
    expect_parts_add_up(step);
    EXPECT_EQ(step.conditions.graphs_built, step.id.v < 3 ? 1U : 0U) << step.id.v;
    EXPECT_EQ(step.conditions.queue_ns, 0U) << "nothing ran before";
  }
  EXPECT_EQ(steps[1].conditions.sample_ns, 0U) << "the prompt's other part was not sampled";
  EXPECT_GT(steps[2].conditions.sample_ns, 0U);
  EXPECT_GT(steps[0].conditions.detokenize_ns, 0U) << "the text of the prompt's tokens";

  // What is before a step belongs to it, so the last sampling is a part of the result only.
  const auto sampled = static_cast<std::uint64_t>(run.result.sample_ns);
  EXPECT_GT(sampled, total(steps, &StepConditions::sample_ns));
  EXPECT_EQ(run.info.fact("result.sample_ns"), std::to_string(run.result.sample_ns));
  EXPECT_EQ(run.info.fact("result.detokenize_ns"), std::to_string(run.result.detokenize_ns));

  const SpentTime spent = session_conditions(run.reader()).value().spent;
  EXPECT_EQ(spent.steps, steps.size());
  EXPECT_EQ(spent.graphs_built, 3U);
  EXPECT_EQ(spent.evaluate_ns, total(steps, &StepConditions::evaluate_ns));
  EXPECT_EQ(spent.total_ns, spent.sample_ns + spent.detokenize_ns + spent.build_ns +
                                spent.evaluate_ns + spent.other_ns());
}

TEST(StepTimes, AreRecordedWithoutOps) {
  TracedModel model(two_layer_model("small"));
  GenerationRequest request = greedy_tokens(20, 10);
  request.level = Level::Minimal;
  const auto run = model.run(request);
  const std::vector<Step> steps = run.steps();
  ASSERT_EQ(steps.size(), 10U);
  for (const Step& step : steps) expect_parts_add_up(step);
  EXPECT_EQ(total(steps, &StepConditions::graphs_built), 2U);
}

// Time of whoever receives the tokens is none of the parts.
TEST(StepTimes, TimeOfTheReceiverIsNoPart) {
  TracedModel model(two_layer_model("small"));
  constexpr std::uint32_t kTokens = 20;
  constexpr auto kSlow = 5ms;
  const auto run = model.run(greedy_tokens(20, kTokens),
                             [&](std::uint32_t) { std::this_thread::sleep_for(kSlow); });
  const SpentTime spent = session_conditions(run.reader()).value().spent;
  const auto planted =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(kSlow).count()) * (kTokens - 1);
  EXPECT_GE(spent.other_ns(), planted);
}

// Many samplers of one request, none of another: the difference is in the sampling alone.
TEST(StepTimes, SamplingIsThatOfTheSamplers) {
  TracedModel model(two_layer_model("small"));
  const auto sampling = [&](const Sampling& settings) {
    GenerationRequest request = greedy_tokens(20, 60);
    request.sampling = settings;
    std::vector<std::uint64_t> times;
    for (const Step& step : model.run(request).steps())
      if (step.phase == Phase::Generate) times.push_back(step.conditions.sample_ns.value_or(0));
    std::ranges::sort(times);
    return times[times.size() / 2];  // the machine may be busy
  };
  Sampling settings;
  settings.temperature = 0;
  const std::uint64_t greedy = sampling(settings);
  // Every token is a candidate of every sampler.
  settings = {};
  settings.temperature = 1;
  settings.top_k = 0;
  settings.top_p = 0.99F;
  settings.min_p = 1e-6F;
  settings.repeat_penalty = 1.1F;
  const std::uint64_t many = sampling(settings);
  EXPECT_GT(many, 2 * greedy) << many << " against " << greedy << " ns per step";
}

}  // namespace
}  // namespace tt::test
