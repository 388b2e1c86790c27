// Which tokens of a step an access belongs to, for exports with one row per token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tracer/format/access/access.h"

namespace tt::exchange {

// A token that an access belongs to.
struct TokenOwner {
  std::uint32_t token = 0;  // index in the step
  // Of the expert among the choices of this token; -1 and NaN: not an expert, unknown.
  std::int32_t rank = -1;
  float score = 0;
};

// The tokens that chose an expert, or that have the row of a weight as their embedding. Empty: all
// tokens of the step share the access, or it is not known whose it is.
std::vector<TokenOwner> owners_of(const GraphTemplate& graph, std::span<const Access> accesses,
                                  const Step& step, const StepAccess& access);

}  // namespace tt::exchange
