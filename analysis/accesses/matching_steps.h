// Finds the steps that can contain an access passing a filter, using only the index; no step
// is read. Has the lifetime of one query.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/accesses/access_filter.h"
#include "analysis/index/session_index.h"

namespace tt {

// The accesses of a series that can pass the filter in some step.
class AccessMatcher {
 public:
  AccessMatcher(const SessionIndex& index, const AccessFilter& filter);
  // Calls `each(access)`.
  template <class Each>
  void for_each(const Series& series, Each each) const {
    for (std::uint32_t i = 0; i < series.ran; ++i) {
      if (filter_.op && filter_.op->v != i) continue;
      const OutlineOp& op = series.outline->ops[i];
      if (!kinds_[op.kind] && !ops_[op.op]) continue;
      for (std::uint32_t a = op.first_access; a < op.first_access + op.accesses; ++a)
        if (passes(series, series.outline->accesses[a])) each(series.outline->accesses[a]);
    }
  }

 private:
  bool passes(const Series& series, const OutlineAccess& access) const;

  const AccessFilter& filter_;
  // Per view, kind and op of SessionNames: whether it passes.
  std::vector<bool> names_, kinds_, ops_;
};

class MatchingSteps {
 public:
  MatchingSteps(const SessionIndex& index, const AccessFilter& filter, std::optional<Phase> phase);

  // The first candidate >= `step`; the last candidate < `end`, none if there is none. Damaged
  // steps and steps that are not in the index yet are candidates.
  std::uint32_t at_or_after(std::uint32_t step) const;
  std::optional<std::uint32_t> before(std::uint32_t end) const;

 private:
  // The accesses of a series that pass.
  struct Picked {
    bool every_step = false;           // an access that occurs in every step passes
    std::vector<std::uint32_t> rules;  // rules of the passing accesses that depend on the step
    bool any() const { return every_step || !rules.empty(); }
  };
  bool may_match(std::uint32_t step) const;
  bool has_matching_part(const Series& series, std::uint32_t rule, std::uint32_t place) const;

  const SessionIndex& index_;
  const std::optional<std::int32_t> expert_;
  std::vector<Picked> picked_;  // per series
  bool any_ = false;
};

}  // namespace tt
