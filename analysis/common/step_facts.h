// What a step says about itself, without the times of its ops and the values of its slots.
#pragma once

#include <cstdint>

#include "tracer/format/model/step.h"

namespace tt {

struct StepFacts {
  StepId id;
  Phase phase = Phase::Other;
  Timing timing = Timing::None;
  TemplateId graph{};  // 0: none
  Ns begin{}, end{}, first_op{};
  std::uint32_t first_token = 0, n_tokens = 0, threads = 0;
  bool dropped = false, aborted = false;
  StepConditions conditions;
  friend bool operator==(const StepFacts&, const StepFacts&) = default;
};

inline StepFacts facts_of(const Step& step) {
  return {.id = step.id,
          .phase = step.phase,
          .timing = step.timing,
          .graph = step.graph,
          .begin = step.begin,
          .end = step.end,
          .first_op = step.first_op,
          .first_token = step.first_token,
          .n_tokens = step.n_tokens,
          .threads = step.threads,
          .dropped = step.dropped,
          .aborted = step.aborted,
          .conditions = step.conditions};
}

}  // namespace tt
