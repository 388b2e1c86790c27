// The captured outputs of two sessions, op by op (tt compare --values).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// One output that both sessions have captured.
struct ValuesDifference {
  StepId step;
  OpId op;  // of the left session
  std::string operation, tensor;
  LayerId layer = kNoLayer;  // of the op
  std::array<std::uint64_t, 4> ne{};
  bool same_shape = true;     // otherwise the errors are 0
  double max_error = 0;       // largest |left - right|; infinity if only one is NaN
  double relative_error = 0;  // norm of left - right, divided by the norm of left
  std::size_t at = 0;         // element of the largest error, in the order of the values
  float left = 0, right = 0;  // there
};

struct ValuesComparison {
  std::vector<ValuesDifference> outputs;        // in the order of the left session's ops
  std::uint64_t only_left = 0, only_right = 0;  // captured outputs
  // The first step of the left session that evaluates a token that the right one does not have at
  // its place: from there on the runs do not compute the same.
  std::optional<StepId> other_tokens;
};

// Outputs belong together if they have the same step and tensor name; of several with one name in a
// step, those in the same place of the order. Reads one step of each session at a time.
std::expected<ValuesComparison, TraceError> compare_values(const SessionReader& left,
                                                           const SessionReader& right,
                                                           const ContinueCheck& keep_going);

}  // namespace tt
