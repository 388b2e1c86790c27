// Prompts that were evaluated in several steps, for SmallSession.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/sessions/small_session.h"

namespace tt::test {

// Steps of the prompt with `tokens`, each with an op time of 1000 ns for a token.
inline std::vector<Step> prompt_steps(const std::vector<std::pair<std::uint32_t, Timing>>& tokens) {
  std::vector<Step> steps;
  std::uint32_t first = 0;
  for (const auto& [count, timing] : tokens) {
    Step step = small_step(static_cast<std::uint32_t>(steps.size()));
    step.phase = Phase::Prompt;
    step.timing = timing;
    step.begin = step.first_op = Ns{std::int64_t{first} * 10'000};
    step.first_token = first;
    step.n_tokens = count;
    for (std::size_t op = 0; op < step.op_ends.size(); ++op)
      step.op_ends[op] =
          Ns{step.begin.v + std::int64_t{count} * 200 * static_cast<std::int64_t>(op + 1)};
    step.end = step.op_ends.back();
    first += count;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace tt::test
