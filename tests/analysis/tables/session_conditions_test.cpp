// Verdicts of constructed conditions, at both sides of every threshold, and the spread of step
// times. Recorded ones: tests/tracer/recorder/planted_conditions_test.cpp.
#include "analysis/tables/session_conditions.h"

#include <gtest/gtest.h>

#include <format>

#include "analysis/tables/step_summary.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/model/quantile.h"

namespace tt::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// 10 ms of two threads that ran all the time.
StepConditions quiet() {
  return {.interval_ns = 10 * kMs,
          .cpu_ns = 20 * kMs,
          .cpu_wait_ns = 0,
          .voluntary_switches = 5,
          .involuntary_switches = 0,
          .minor_faults = 3,
          .major_faults = 0,
          .disk_read_bytes = 0,
          .throttled_ns = 0,
          .pressure_cpu_ns = 0,
          .pressure_io_ns = 0,
          .pressure_memory_ns = 0,
          .queue_ns = 0,
          .sample_ns = 0,
          .detokenize_ns = 0,
          .build_ns = 0,
          .evaluate_ns = 0,
          .graphs_built = 0,
          .frequency_khz = 2'000'000,
          .thermal_throttles = 0,
          .memory_limit_bytes = 1 << 30,
          .locked_bytes = 0,
          .resident_bytes = 0};
}

template <class Change>
std::optional<Verdict> verdict_with(Change change) {
  StepConditions conditions = quiet();
  change(conditions);
  return verdict_of(conditions, 2);
}

// 2 threads for 10 ms: 1 ms is 5 % of their time.
TEST(Verdict, NamesTheLossAtItsThreshold) {
  const struct {
    const char* name;
    void (*change)(StepConditions&);
    std::optional<Verdict> verdict;
  } cases[] = {
      {"all on processors", [](StepConditions&) {}, Verdict::Clean},
      {"idle without faults", [](StepConditions& c) { c.cpu_ns = 5 * kMs; }, Verdict::Clean},
      {"waiting a little", [](StepConditions& c) { c.cpu_ns = 19 * kMs, c.cpu_wait_ns = kMs - 1; },
       Verdict::Clean},
      {"waiting", [](StepConditions& c) { c.cpu_ns = 19 * kMs, c.cpu_wait_ns = kMs; },
       Verdict::Contended},
      {"throttled a little", [](StepConditions& c) { c.throttled_ns = kMs - 1; }, Verdict::Clean},
      {"throttled", [](StepConditions& c) { c.throttled_ns = kMs; }, Verdict::Throttled},
      {"too hot", [](StepConditions& c) { c.thermal_throttles = 1; }, Verdict::Throttled},
      {"not too hot", [](StepConditions& c) { c.thermal_throttles = 0; }, Verdict::Clean},
      {"throttled threads wait for each other",
       [](StepConditions& c) { c.cpu_wait_ns = 9 * kMs, c.throttled_ns = 6 * kMs; },
       Verdict::Throttled},
      {"blocked for 2 ms without a fault", [](StepConditions& c) { c.cpu_ns = 18 * kMs; },
       Verdict::Clean},
      {"blocked a little with faults",
       [](StepConditions& c) { c.cpu_ns = 18 * kMs + 1, c.major_faults = 9; }, Verdict::Clean},
      {"blocked with faults", [](StepConditions& c) { c.cpu_ns = 18 * kMs, c.major_faults = 9; },
       Verdict::Disk},
      {"blocked more than waiting",
       [](StepConditions& c) { c.cpu_ns = 12 * kMs, c.cpu_wait_ns = 3 * kMs, c.major_faults = 9; },
       Verdict::Disk},
      {"waiting more than blocked",
       [](StepConditions& c) { c.cpu_ns = 12 * kMs, c.cpu_wait_ns = 5 * kMs, c.major_faults = 9; },
       Verdict::Contended},
      {"faults that did not cost much", [](StepConditions& c) { c.major_faults = 1000; },
       Verdict::Clean},
      {"no limit of the CPU time is known", [](StepConditions& c) { c.throttled_ns = {}; },
       Verdict::Clean},
      {"no times of threads", [](StepConditions& c) { c.cpu_ns = {}; }, std::nullopt},
      {"no wait", [](StepConditions& c) { c.cpu_wait_ns = {}; }, std::nullopt},
      {"nothing", [](StepConditions& c) { c = {}; }, std::nullopt},
      {"numbers of a damaged file",
       [](StepConditions& c) { c.cpu_wait_ns = c.throttled_ns = UINT64_MAX; }, Verdict::Throttled},
  };
  for (const auto& c : cases) EXPECT_EQ(verdict_with(c.change), c.verdict) << c.name;
}

TEST(Verdict, WakingAThreadIsNoLoss) {
  StepConditions conditions = quiet();
  conditions.interval_ns = kMs / 5;
  conditions.cpu_ns = 300'000;
  conditions.cpu_wait_ns = 99'999;
  EXPECT_EQ(verdict_of(conditions, 2), Verdict::Clean) << "a quarter of 0.4 ms";
  conditions.cpu_wait_ns = 100'000;
  EXPECT_EQ(verdict_of(conditions, 2), Verdict::Contended);
}

TEST(Quantile, IsNearestRank) {
  const std::vector<int> one = {7}, three = {1, 2, 3};
  std::vector<int> twenty(20), hundred(100);
  for (int i = 0; i < 20; ++i) twenty[static_cast<std::size_t>(i)] = i + 1;
  for (int i = 0; i < 100; ++i) hundred[static_cast<std::size_t>(i)] = i + 1;
  const auto at = [](const std::vector<int>& values, double q) {
    return quantile(std::span(values), q);
  };
  EXPECT_EQ(at({}, 0.5), std::nullopt);
  EXPECT_EQ(at(one, 0), 7);
  EXPECT_EQ(at(one, 0.95), 7);
  EXPECT_EQ(at(three, 0.5), 2);
  EXPECT_EQ(at(three, 0.95), 3) << "2 of 3 would be 67 %";
  EXPECT_EQ(at(three, 0.05), 1);
  EXPECT_EQ(at(twenty, 0.95), 19);
  EXPECT_EQ(at(twenty, 0.5), 10);
  EXPECT_EQ(at(hundred, 0.05), 5);
  EXPECT_EQ(at(hundred, 1), 100);
  // The definition, for every size.
  for (int n = 1; n <= 60; ++n) {
    for (const double q : {0.05, 0.25, 0.5, 0.9, 0.95}) {
      std::vector<int> values(static_cast<std::size_t>(n));
      for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = i + 1;
      const int found = *at(values, q);
      EXPECT_GE(found, q * n - 1e-6);
      EXPECT_LT(found - 1, q * n - 1e-6) << "the smallest such value";
    }
  }
}

Step step_of(std::uint32_t id, std::int64_t ms, const StepConditions& conditions,
             Timing timing = Timing::Fast) {
  Step step = small_step(id);
  step.timing = timing;
  step.threads = 2;
  step.end = step.begin + Ns{ms * static_cast<std::int64_t>(kMs)};
  step.n_tokens = 1;
  step.conditions = conditions;
  return step;
}

StepConditions contended() {
  StepConditions conditions = quiet();
  conditions.cpu_ns = 12 * kMs;
  conditions.cpu_wait_ns = 8 * kMs;
  return conditions;
}

// A prompt, a learned step of 900 ms, 8 clean steps of 10 to 17 ms, 2 contended ones of 50 and
// 60 ms, and one of each that does not count.
std::vector<Step> steps() {
  std::vector<Step> steps = {step_of(0, 40, quiet()), step_of(1, 900, quiet(), Timing::Learned)};
  const auto add = [&](std::int64_t ms, const StepConditions& conditions) -> Step& {
    steps.push_back(step_of(static_cast<std::uint32_t>(steps.size()), ms, conditions));
    return steps.back();
  };
  for (std::int64_t i = 0; i < 8; ++i) add(10 + i, quiet());
  add(50, contended());
  add(60, contended());
  add(1, quiet()).aborted = true;
  add(2, {}).dropped = true;
  return steps;
}

TEST(SessionConditions, LearnedStepsDoNotDecideTheVerdict) {
  const auto verdict = [](std::vector<Step> steps) {
    const SmallSession session(std::move(steps));
    return session_conditions(session.reader()).value().verdict;
  };
  const Step learned = step_of(0, 900, contended(), Timing::Learned);
  EXPECT_EQ(verdict({learned, step_of(1, 10, quiet())}), Verdict::Clean);
  EXPECT_EQ(verdict({learned, step_of(1, 10, contended())}), Verdict::Contended);
  EXPECT_EQ(verdict({learned}), Verdict::Contended) << "there is no other";
}

TEST(SessionConditions, SpreadIsThatOfNormalSteps) {
  const SmallSession session(steps());
  const auto all = session_conditions(session.reader());
  ASSERT_TRUE(all.has_value());
  const PhaseTimes& times = all->phases.at(Phase::Generate);
  EXPECT_EQ(times.steps, 13u);
  EXPECT_EQ(times.normal, 10u);
  EXPECT_EQ(times.learned, 1u);
  EXPECT_EQ(times.disturbed, 2u);
  EXPECT_EQ(times.left_out, 0u);
  EXPECT_EQ(times.time, Ns{(900 + 108 + 110 + 3) * static_cast<std::int64_t>(kMs)});
  const auto ms = [](std::int64_t n) { return Ns{n * static_cast<std::int64_t>(kMs)}; };
  EXPECT_EQ(times.spread, (Spread{.p5 = ms(10), .median = ms(14), .p95 = ms(60)}));
  EXPECT_EQ(all->unknown, 1u);
  EXPECT_EQ(all->steps,
            (std::map<Verdict, std::uint32_t>{{Verdict::Clean, 11}, {Verdict::Contended, 2}}));

  const auto clean = session_conditions(session.reader(), LeaveOut::Disturbed);
  ASSERT_TRUE(clean.has_value());
  const PhaseTimes& only = clean->phases.at(Phase::Generate);
  EXPECT_EQ(only.normal, 8u);
  EXPECT_EQ(only.left_out, 2u);
  EXPECT_EQ(only.time, times.time) << "sums are of all steps";
  EXPECT_EQ(only.spread, (Spread{.p5 = ms(10), .median = ms(13), .p95 = ms(17)}));
}

// Other programs are not the reason where the threads wait for each other.
TEST(SessionConditions, MoreThreadsThanProcessorsIsSaid) {
  const ThreadTime time{.total_ns = 1e9, .wait_ns = 4e8, .throttled_ns = 5e8};
  const auto info = [](const char* threads, const char* cores, const char* allowed,
                       const char* limit) {
    SessionInfo out;
    out.facts = {{"context.threads", threads}, {"host.cores", cores}};
    if (allowed != nullptr) out.facts.emplace_back("host.allowed_processors", allowed);
    if (limit != nullptr) out.facts.emplace_back("host.cpu_limit", limit);
    return out;
  };
  struct Case {
    SessionInfo info;
    Verdict verdict;
    const char* text;
  };
  const Case cases[] = {
      {info("2", "2", "1", nullptr), Verdict::Contended,
       "contended: 2 threads on 1 allowed processor: they waited for 40"},
      {info("8", "16", "4", "8.00"), Verdict::Contended, "contended: 8 threads on 4 allowed proc"},
      {info("8", "16", "16", "2.50"), Verdict::Throttled, "throttled: 8 threads on 2 allowed proc"},
      {info("8", "16", "16", "0.50"), Verdict::Throttled, "throttled: 8 threads on 0.50 of an all"},
      {info("1", "2", "2", "0.50"), Verdict::Contended,
       "contended: 1 thread on 0.50 of an allowed processor: they waited for 40"},
      {info("1", "2", "2", nullptr), Verdict::Contended, "contended: the threads waited for a"},
      {info("4", "16", "4", nullptr), Verdict::Contended, "contended: the threads waited for a"},
      {info("4", "16", nullptr, nullptr), Verdict::Contended, "contended: the threads waited for"},
  };
  for (const Case& c : cases) {
    const ThreadRoom room = thread_room(c.info);
    const std::string text = advice_on(c.verdict, time, room);
    EXPECT_TRUE(text.starts_with(c.text)) << text;
    EXPECT_EQ(text.contains("stop other programs"), !room.is_crowded()) << text;
    EXPECT_EQ(text.contains(std::format("-t {}", room.processors)), room.has_too_many_threads())
        << text;
    if (room.threads == 1) {
      EXPECT_FALSE(text.contains("fewer threads")) << text;
    }
  }
}

TEST(SessionConditions, VerdictOfASessionIsThatOfItsThreadTime) {
  // 2 of 12 steps that were not learned: 16 of 240 ms.
  const SmallSession session(steps());
  const auto found = session_conditions(session.reader());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->verdict, Verdict::Contended);
  EXPECT_TRUE(found->text.starts_with("contended: the threads waited for a processor for 6.67 %"))
      << found->text;
  EXPECT_TRUE(found->text.contains("fewer threads (-t, when the program starts)")) << found->text;
  EXPECT_TRUE(found->text.ends_with("2 of 13 steps are not clean.")) << found->text;

  std::vector<Step> many = steps();
  for (std::uint32_t i = 0; i < 5; ++i)
    many.push_back(step_of(static_cast<std::uint32_t>(many.size()), 10, quiet()));
  const auto mostly = session_conditions(SmallSession(many).reader());
  ASSERT_TRUE(mostly.has_value());
  EXPECT_EQ(mostly->verdict, Verdict::Clean);
  EXPECT_TRUE(mostly->text.ends_with("2 of 18 steps are not clean.")) << mostly->text;
}

TEST(SessionConditions, SaysWhyThereIsNoVerdict) {
  const auto text_of = [](const SessionInfo& info) {
    const SmallSession session({small_step(0)}, info);
    const auto found = session_conditions(session.reader());
    EXPECT_TRUE(found.has_value());
    EXPECT_EQ(found->verdict, std::nullopt);
    EXPECT_EQ(found->unknown, 1u);
    return found->text;
  };
  SessionInfo info = SmallSession::small_info();
  EXPECT_EQ(text_of(info), "unknown: the recording has no conditions of the machine.");
  info.facts.emplace_back("trace.conditions", "no cpu_ns, cpu_wait_ns: no such file");
  EXPECT_EQ(text_of(info), "unknown: no cpu_ns, cpu_wait_ns: no such file.");
}

// A step uses 1,056 bytes of whole weights and rows of 32 bytes for its two tokens.
TEST(SessionConditions, CountsEachByteOfTheFilesOnceForTheRereadFactor) {
  const auto reading = [](std::uint32_t id, std::vector<std::int64_t> tokens, std::uint64_t bytes,
                          std::uint64_t faults) {
    Step step = small_step(id);
    step.slots[0].ints = std::move(tokens);
    step.conditions = quiet();
    step.conditions.disk_read_bytes = bytes;
    step.conditions.major_faults = faults;
    return step;
  };
  const SmallSession session({reading(0, {3, 5}, 2240, 4), reading(1, {5, 7}, 1216, 2)});
  const auto found = session_conditions(session.reader());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->disk, (DiskUse{.read = 3456, .faults = 6, .mapped = 1152}));
  EXPECT_EQ(found->disk->reread_factor(), 3.0);
  EXPECT_EQ(found->disk->bytes_per_fault(), 576U);
  const auto steps = step_summaries(session.reader(), {.from = 0, .limit = 2});
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(steps->rows[0].mapped, Bytes{1120});
  EXPECT_EQ(steps->rows[1].mapped, Bytes{1120});

  const SmallSession in_memory({reading(0, {3, 5}, 0, 0)});
  EXPECT_EQ(session_conditions(in_memory.reader())->disk, std::nullopt);
}

TEST(SessionConditions, SurvivesAnyNumbers) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    TempFolder folder;
    const RandomSession session = random_session(seed);
    ASSERT_TRUE(write_session(folder / "s.ttrace", session).has_value());
    const auto found = session_conditions(SessionReader::open(folder / "s.ttrace").value());
    ASSERT_TRUE(found.has_value());
    std::uint32_t steps = found->unknown;
    for (const auto& [verdict, count] : found->steps) steps += count;
    EXPECT_EQ(steps, session.steps.size());
    EXPECT_FALSE(found->text.empty());
  }
}

}  // namespace
}  // namespace tt::test
