// The speed of a model as `tt bench-model` measures it, and the comparison of two measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/speed/speed_verdict.h"

namespace tt {

struct SpeedOp {
  std::string op;
  double count = 0;              // executions per run
  std::vector<double> ns;        // per run; two per round
  std::vector<double> quiet_ns;  // the same without disturbed steps (OpKindTime); empty: not known
};

// One test, such as a prompt of 512 tokens. Times are per run of the test. Each round measures
// every side twice; rounds are in order.
struct SpeedTest {
  std::uint32_t n_prompt = 0, n_gen = 0;
  // Two equal contexts without recording.
  std::vector<double> first_ns, second_ns;
  // The same without disturbed steps (BenchTestRound); empty: not known.
  std::vector<double> first_quiet_ns, second_quiet_ns;
  std::vector<double> recorded_ns;
  std::vector<SpeedOp> ops;  // of the recorded runs

  std::uint32_t tokens() const { return n_prompt + n_gen; }
  std::vector<double> samples_ns() const;  // without recording
  // The noise floor of the times without recording.
  double noise() const;
  // How long a run takes that is recorded, relative to one that is not.
  SpeedChange recording_cost() const;
  // A time per round without recording, for comparisons: that of the fastest block, without
  // disturbed steps if they are known. Other programs only add time.
  std::vector<double> rounds_ns() const;
  double noise_of_rounds() const;  // the noise floor of these times
};

struct ComparedOp {
  std::string op;
  double before_ns = 0, after_ns = 0;  // of the fastest rounds; 0: this side does not have it
  double share = 0;                    // of the time of all ops, on the side where it is larger
  std::optional<SpeedChange> change;   // nullopt: less than kLeastShare, or only one side has it
  double added_ns() const { return after_ns - before_ns; }
};
// An op kind with a smaller share is not judged, and a change that adds or saves less than
// kLeastEffect of the time of all ops is not told apart: it explains nothing.
inline constexpr double kLeastShare = 0.01, kLeastEffect = 0.0005;

struct ComparedTest {
  std::uint32_t n_prompt = 0, n_gen = 0;
  double before_ns = 0, after_ns = 0;  // of the fastest rounds
  SpeedChange change;
  std::vector<ComparedOp> ops;  // ordered by |added_ns|, the largest first
};

// Whether the rounds of both sides were measured in turns, or those of one side first. In the
// second case the machine may have been another one for the whole of a side, which no sample of
// either side shows: the noise floor is at least kLeastNoiseOfRuns.
enum class SpeedOrder : bool { InTurns, Separate };
inline constexpr double kLeastNoiseOfRuns = 0.02;

// Tests that both have, in the order of `before`. The confidence of a judgement on an op kind is
// higher (Bonferroni), because many are judged.
std::vector<ComparedTest> compare_speed(const std::vector<SpeedTest>& before,
                                        const std::vector<SpeedTest>& after,
                                        SpeedOrder order = SpeedOrder::Separate);

}  // namespace tt
