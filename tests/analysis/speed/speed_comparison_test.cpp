// Comparison of two measurements of a model: the op kind that became slower is named.
#include "analysis/speed/speed_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "analysis/speed/quiet_time.h"
#include "analysis/speed/speed_ops.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

// A run of 100 ms: MUL_MAT 80, ROPE 12, RMS_NORM 7.5, GET_ROWS 0.5. Rounds differ by 1 %, blocks by
// 0.7 %; one block in 20 is disturbed by up to 20 %.
SpeedTest measured(unsigned seed, double mul_mat, std::size_t rounds = 7) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  SpeedTest test;
  test.n_gen = 128;
  test.ops = {{"GET_ROWS", 128, {}, {}},
              {"MUL_MAT", 19'968, {}, {}},
              {"RMS_NORM", 5'760, {}, {}},
              {"ROPE", 5'632, {}, {}}};
  for (std::size_t round = 0; round < rounds; ++round) {
    const double speed = std::exp(0.01 * normal(random));
    for (int block = 0; block < 2; ++block) {
      const auto machine = [&] {
        const double disturbed = uniform(random) < 0.05 ? 1 + 0.2 * uniform(random) : 1;
        return 1e6 * speed * std::exp(0.007 * normal(random)) * disturbed;
      };
      const double ms = 80 * mul_mat + 12 + 7.5 + 0.5;
      test.first_ns.push_back(ms * machine());
      test.second_ns.push_back(ms * machine());
      const double recorded = machine();
      test.recorded_ns.push_back(1.01 * ms * recorded);
      test.ops[0].ns.push_back(0.5 * recorded);
      test.ops[1].ns.push_back(80 * mul_mat * recorded);
      test.ops[2].ns.push_back(7.5 * recorded * std::exp(0.007 * normal(random)));
      test.ops[3].ns.push_back(12 * recorded * std::exp(0.007 * normal(random)));
    }
  }
  return test;
}

std::string named_ops(const ComparedTest& test) {
  std::string names;
  for (const ComparedOp& op : test.ops)
    if (op.change && op.change->verdict != SpeedVerdict::Equal)
      names += op.op + " " + to_text(op.change->verdict) + ";";
  return names;
}

TEST(SpeedComparison, FindsAndNamesTheSlowOp) {
  constexpr unsigned kRuns = 200;
  unsigned equal = 0, found = 0;
  for (unsigned run = 0; run < kRuns; ++run) {
    const ComparedTest same = compare_speed({measured(2 * run, 1)}, {measured(2 * run + 1, 1)})[0];
    equal += same.change.verdict == SpeedVerdict::Equal && named_ops(same).empty() ? 1U : 0U;
    const ComparedTest slow =
        compare_speed({measured(2 * run, 1)}, {measured(2 * run + 1, 1.05)})[0];
    found += slow.change.verdict == SpeedVerdict::Slower && named_ops(slow) == "MUL_MAT slower;"
                 ? 1U
                 : 0U;
  }
  EXPECT_GE(equal, kRuns * 97 / 100);
  EXPECT_GE(found, kRuns * 95 / 100);
}

// ROPE has 1.5 % of the time.
TEST(SpeedComparison, ChangesThatExplainNothingAreNotNamed) {
  const auto with_rope = [](double ms) {
    SpeedTest test;
    test.n_gen = 128;
    test.ops = {{"MUL_MAT", 1'000, {}, {}}, {"ROPE", 100, {}, {}}};
    for (int block = 0; block < 40; ++block) {
      const double speed = 1e6 * (1 + 0.0001 * (block % 7));
      test.first_ns.push_back((98.5 + ms) * speed);
      test.second_ns.push_back((98.5 + ms) * speed);
      test.ops[0].ns.push_back(98.5 * speed);
      test.ops[1].ns.push_back(ms * speed);
    }
    return test;
  };
  const auto named = [&](double ms) {
    return named_ops(compare_speed({with_rope(1.5)}, {with_rope(ms)}, SpeedOrder::InTurns).at(0));
  };
  EXPECT_EQ(named(1.5 * 1.02), "") << "0.03 % of the time of all ops";
  EXPECT_EQ(named(1.5 * 1.05), "ROPE slower;") << "0.08 %";
  EXPECT_EQ(named(1.5 * 0.95), "ROPE faster;");
}

TEST(SpeedComparison, ComparesTestsThatBothHave) {
  SpeedTest prompt = measured(1, 1), other = measured(2, 1);
  prompt.n_prompt = 512;
  other.n_gen = 64;
  EXPECT_TRUE(compare_speed({prompt, other}, {measured(3, 1)}).empty());
  const auto tests = compare_speed({prompt, measured(1, 1)}, {measured(3, 1.2), other});
  ASSERT_EQ(tests.size(), 1U);
  EXPECT_EQ(tests[0].n_prompt, 0U);
  EXPECT_EQ(tests[0].n_gen, 128U);
  EXPECT_NEAR(tests[0].change.ratio, 1.16, 0.02);
  EXPECT_EQ(tests[0].ops[0].op, "MUL_MAT");  // by added time
  EXPECT_FALSE(tests[0].ops[3].change.has_value());
  EXPECT_EQ(tests[0].ops[3].op, "GET_ROWS");  // 0.5 % of the time
}

// A round counts with its fastest block; an op kind of one side only is listed, not judged.
TEST(SpeedComparison, RoundsAndOpsOfOneSide) {
  SpeedTest one = measured(1, 1);
  one.first_ns = {9, 8, 7, 20};
  one.second_ns = {10, 6, 8, 9};
  EXPECT_EQ(one.rounds_ns(), (std::vector<double>{6, 7}));
  EXPECT_EQ(one.samples_ns().size(), 8U);
  SpeedTest fused = measured(2, 1);
  fused.ops[3].op = "ROPE+SET_ROWS";
  const auto ops = compare_speed({measured(1, 1)}, {fused})[0].ops;
  ASSERT_EQ(ops.size(), 5U);
  for (const ComparedOp& op : ops) {
    if (!op.op.starts_with("ROPE")) continue;
    EXPECT_FALSE(op.change.has_value());
    EXPECT_NEAR(op.share, 0.12, 0.01);
  }
}

// A difference of 1 % in 40 rounds: of two runs it may be the machine, in turns it is not.
TEST(SpeedComparison, SmallDifferencesNeedTurns) {
  SpeedTest before, after;
  before.n_gen = after.n_gen = 1;
  for (int i = 0; i < 80; ++i) {
    const double machine = 1 + 0.001 * (i % 7);
    before.first_ns.push_back(1000 * machine);
    before.second_ns.push_back(1000 * machine);
    after.first_ns.push_back(1010 * machine);
    after.second_ns.push_back(1010 * machine);
  }
  const auto in_turns = compare_speed({before}, {after}, SpeedOrder::InTurns);
  const auto separate = compare_speed({before}, {after}, SpeedOrder::Separate);
  EXPECT_EQ(in_turns[0].change.verdict, SpeedVerdict::Slower);
  EXPECT_EQ(separate[0].change.verdict, SpeedVerdict::Equal);
  EXPECT_EQ(separate[0].change.noise, kLeastNoiseOfRuns);
}

// Half of the blocks are disturbed; times without disturbed steps tell a difference of 5 %.
TEST(SpeedComparison, LeavesDisturbedStepsOut) {
  const auto busy = [](double factor, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    SpeedTest test;
    test.n_gen = 1;
    test.ops = {{"MUL_MAT", 1, {}, {}}};
    for (int i = 0; i < 20; ++i) {
      const double quiet = 1000 * factor * (1 + 0.01 * uniform(random));
      for (auto* times : {&test.first_ns, &test.second_ns, &test.ops[0].ns})
        times->push_back(quiet * (1 + uniform(random)));
      for (auto* times : {&test.first_quiet_ns, &test.second_quiet_ns, &test.ops[0].quiet_ns})
        times->push_back(quiet);
    }
    return test;
  };
  SpeedTest before = busy(1, 1), after = busy(1.05, 2);
  const ComparedTest told = compare_speed({before}, {after})[0];
  EXPECT_EQ(told.change.verdict, SpeedVerdict::Slower);
  EXPECT_EQ(named_ops(told), "MUL_MAT slower;");
  EXPECT_EQ(compare_speed({before}, {busy(1, 3)})[0].change.verdict, SpeedVerdict::Equal);
  for (SpeedTest* test : {&before, &after}) {
    test->first_quiet_ns.clear();
    test->second_quiet_ns.clear();
    test->ops[0].quiet_ns.clear();
  }
  EXPECT_EQ(compare_speed({before}, {after})[0].change.verdict, SpeedVerdict::Equal);
}

TEST(SpeedComparison, RecordingCostIsPaired) {
  // Recording costs 1 %; the noise of these blocks hides it or not, but never more than that.
  const SpeedChange cost = measured(5, 1, 40).recording_cost();
  EXPECT_NEAR(cost.ratio, 1.01, 0.005);
  ASSERT_TRUE(cost.low.has_value());
  EXPECT_LT(*cost.low, 1.01);
  EXPECT_GT(*cost.high, 1.01);
}

// Fast steps in a row count; a single fast one does not, and slow ones do not.
TEST(SpeedOps, QuietTimeIsThatOfTheFastestRow) {
  std::vector<double> times(100, 20);
  times[3] = 1;
  EXPECT_EQ(quiet_time(times), 20);
  for (int i = 50; i < 66; ++i) times[static_cast<std::size_t>(i)] = 10;
  times[55] = 500;  // interrupted
  EXPECT_EQ(quiet_time(times), 10);
  // A quarter of few steps.
  EXPECT_EQ(quiet_time(std::vector<double>{5, 9, 2, 8, 7}), 2);
  EXPECT_EQ(quiet_time(std::vector<double>{3}), 3);
  EXPECT_EQ(quiet_time({}), 0);
}

// The sums equal those of a walk over the steps.
TEST(SpeedOps, SumsTheTimeOfEachOpKind) {
  const SmallSession session({small_step(0), small_step(1), small_step(2)});
  const auto reader = SessionReader::open(session.path);
  ASSERT_TRUE(reader.has_value());
  const auto all = time_of_steps(*reader, StepId{0}, StepId{3});
  const auto last = time_of_steps(*reader, StepId{1}, StepId{3});
  ASSERT_TRUE(all.has_value() && last.has_value());
  EXPECT_EQ(all->steps, 3U);
  double ns = 0, ns_of_last = 0, ns_of_ops = 0, ns_of_last_ops = 0;
  std::uint64_t ops = 0, counted = 0;
  for (std::uint32_t id = 0; id < 3; ++id) {
    const auto step = reader->step(StepId{id});
    ASSERT_TRUE(step.has_value());
    for (std::uint32_t op = 0; op < step->op_ends.size(); ++op) {
      ns += static_cast<double>(step->op_duration(OpId{op})->v);
      if (id > 0) ns_of_last += static_cast<double>(step->op_duration(OpId{op})->v);
      ++ops;
    }
  }
  for (const OpKindTime& kind : all->ops) {
    ns_of_ops += kind.ns;
    counted += kind.count;
  }
  for (const OpKindTime& kind : last->ops) ns_of_last_ops += kind.ns;
  // These steps are equal, so no time is left out.
  for (const OpKindTime& kind : all->ops) EXPECT_EQ(kind.quiet_ns, kind.ns) << kind.op;
  EXPECT_GT(ns, 0);
  EXPECT_EQ(ns_of_ops, ns);
  EXPECT_EQ(ns_of_last_ops, ns_of_last);
  EXPECT_EQ(counted, ops);
}

}  // namespace
}  // namespace tt::test
