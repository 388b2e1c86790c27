// The captured outputs of two sessions, op by op (tt compare --values, the panel Compare).
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

// Norms that differ by less may be another order of the same sums.
inline constexpr double kDefaultTolerance = 1e-5, kMaxTolerance = 1e9;

bool differs(const ValuesDifference& of);
bool is_beyond(const ValuesDifference& of, double tolerance);  // of relative errors

// How errors grow: the largest ones of the outputs of a layer, in the steps that evaluate the same
// tokens.
struct LayerDifference {
  LayerId layer;
  std::uint64_t outputs = 0;
  double max_error = 0, relative_error = 0;
};

struct ValuesQuery {
  double tolerance = kDefaultTolerance;
  PageRange page;               // of the rows
  bool only_different = false;  // rows of other outputs are left out
};

struct ValuesComparison {
  double tolerance = 0;
  std::uint64_t compared = 0, different = 0;     // outputs
  std::uint64_t only_left = 0, only_right = 0;   // captured outputs
  std::optional<ValuesDifference> first_beyond;  // nullopt: none is beyond the tolerance
  std::vector<LayerDifference> layers;           // in their order; without outputs of no layer
  std::vector<ValuesDifference> rows;  // of the page, in the order of the left session's ops
  // The first step of the left session that evaluates a token that the right one does not have at
  // its place: from there on the runs do not compute the same.
  std::optional<StepId> other_tokens;
};

// Outputs belong together if they have the same step and tensor name; of several with one name in a
// step, those in the same place of the order. Reads one step of each session at a time, and keeps
// only the rows of the page.
std::expected<ValuesComparison, TraceError> compare_values(const SessionReader& left,
                                                           const SessionReader& right,
                                                           const ValuesQuery& query,
                                                           const ContinueCheck& keep_going);

// Which output a picture is of, and its largest size.
struct ValuesPictureQuery {
  StepId step;
  OpId op;             // of the left session
  std::string tensor;  // name of the output
  std::uint32_t width = 0, height = 0;
};

// An output on both sides. A cell covers one or more neighbouring elements of a row, and of one or
// more rows, and has the element of which both sides differ most: what differs cannot vanish in a
// mean.
struct ValuesPicture {
  ValuesDifference output;
  std::uint32_t width = 0, height = 0;
  std::vector<float> left, right;  // cells: `height` rows of `width`
};

// Errors: NotFound, the sessions have no such output in common, or its shapes differ.
std::expected<ValuesPicture, TraceError> values_picture(const SessionReader& left,
                                                        const SessionReader& right,
                                                        const ValuesPictureQuery& query);

}  // namespace tt
