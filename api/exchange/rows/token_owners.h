// Which tokens of a step an access belongs to, for exports with one row per token.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tracer/format/access/access.h"

namespace tt::exchange {

// A token that an access belongs to.
struct TokenOwner {
  std::int64_t part = 0;    // expert or row of the access
  std::uint32_t token = 0;  // index in the step
  // Of the expert among the choices of this token; -1 and NaN: not an expert, unknown.
  std::int32_t rank = -1;
  float score = 0;
};

// The owners of a step's accesses. The arguments must outlive this object.
class TokenOwners {
 public:
  TokenOwners(const GraphTemplate& graph, std::span<const Access> accesses, const Step& step)
      : graph_(graph), accesses_(accesses), step_(step) {}

  // The tokens that chose an expert, or that have the row of a weight as their embedding, in
  // ascending order. Empty: all tokens of the step share the access, or it is not known whose it
  // is. Valid as long as this object.
  std::span<const TokenOwner> of(const StepAccess& access);

 private:
  std::vector<TokenOwner> of_experts(SlotId slot) const;
  std::vector<TokenOwner> of_rows(SlotId slot) const;

  const GraphTemplate& graph_;
  const std::span<const Access> accesses_;
  const Step& step_;
  std::map<std::pair<std::uint32_t, Extent>, std::vector<TokenOwner>> by_slot_;  // by part, token
};

}  // namespace tt::exchange
