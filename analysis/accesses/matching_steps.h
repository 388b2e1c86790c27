// The steps that can hold an access that passes a filter, by what an index knows of
// their templates and lists: not one of them is read. Lives as long as one question.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/accesses/access_filter.h"
#include "analysis/index/session_index.h"

namespace tt {

// The accesses of a series that can pass, whatever the step.
class OutlinePicks {
 public:
  OutlinePicks(const SessionIndex& index, const AccessFilter& filter);
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
  // Of SessionNames' views(), kinds() and ops(), those that pass.
  std::vector<bool> names_, kinds_, ops_;
};

class MatchingSteps {
 public:
  MatchingSteps(const SessionIndex& index, const AccessFilter& filter, std::optional<Phase> phase);

  // The first one from `step` on; the last one before `end`, none: 0 has been passed. A step
  // that nobody knows may be one: a damaged one, and what the index does not have yet.
  std::uint32_t at_or_behind(std::uint32_t step) const;
  std::optional<std::uint32_t> before(std::uint32_t end) const;

 private:
  // What of a series passes.
  struct Picked {
    bool always = false;               // something that every step has
    std::vector<std::uint32_t> rules;  // else what these decide
    bool any() const { return always || !rules.empty(); }
  };
  bool may_be(std::uint32_t step) const;
  bool has_part(const Series& series, std::uint32_t rule, std::uint32_t place) const;

  const SessionIndex& index_;
  const std::optional<std::int32_t> expert_;
  std::vector<Picked> picked_;  // per series
  bool any_ = false;
};

}  // namespace tt
