// What a model would say after an op, about the token that follows the step: the logit lens, as
// OutputValues. Computed by tracer/probe/logit_lens.h, read by analysis/values/logit_lens.h.
//
// Rows of ne[0] numbers: two numbers, then the bytes of a token's text, one number each, filled up
// with 0.
//   row 0          rank of the token that followed (0: the most likely one; -1: none followed), and
//                  the entropy in bits; no text
//   row 1          the token that followed (-1: none), and the logarithm of its probability
//   rows 2, 3, ... the most likely tokens with the logarithms of their probabilities
#pragma once

#include "tracer/format/model/step.h"

namespace tt {

inline constexpr ValuesOf kLensValues{2};  // beside those that have names in step.h

}  // namespace tt
