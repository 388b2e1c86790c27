// Adds what a round measured (tracer/bench/bench_round.h) to the times of a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>

#include "analysis/speed/quiet_time.h"
#include "analysis/speed/speed_comparison.h"
#include "analysis/speed/speed_ops.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The op kinds of one more recorded block of `runs` runs. Kinds that one block lacks have 0 in it.
void add_block_ops(SpeedTest& test, const StepsTime& block, std::uint32_t runs);

// `Round`: a BenchTestRound, which this folder must not name. `session`: the recording of the
// round. Returns the steps of its recorded blocks, without the op kinds.
template <class Round>
std::expected<StepsTime, TraceError> add_round(SpeedTest& test, const Round& round,
                                               const SessionReader& session) {
  test.n_prompt = round.test.n_prompt;
  test.n_gen = round.test.n_gen;
  StepsTime sums;
  for (std::size_t block = 0; block < 2; ++block) {
    const auto& steps = round.recorded_steps[block];
    const auto time = time_of_steps(session, steps.first, steps.end);
    if (!time) return std::unexpected(time.error());
    test.first_ns.push_back(round.first_ns[block]);
    test.second_ns.push_back(round.second_ns[block]);
    test.recorded_ns.push_back(round.recorded_ns[block]);
    const auto quiet = [&](const auto& times) {
      return quiet_time(times.prompt_ns) + quiet_time(times.token_ns) * round.test.n_gen;
    };
    test.first_quiet_ns.push_back(quiet(round.first_steps[block]));
    test.second_quiet_ns.push_back(quiet(round.second_steps[block]));
    add_block_ops(test, *time, round.runs);
    sums.conditions += time->conditions;
    sums.steps += time->steps;
    sums.steps_without_times += time->steps_without_times;
  }
  return sums;
}

}  // namespace tt
