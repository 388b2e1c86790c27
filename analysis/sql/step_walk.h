// Iterates over the steps of a scan, skipping steps that its conditions exclude.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "analysis/sql/session_source.h"
#include "analysis/sql/virtual_table.h"

namespace tt::sql {

class StepWalk {
 public:
  // Indices of the table's columns that depend on the step; kAbsent: no such column.
  static constexpr std::size_t kAbsent = SIZE_MAX;
  struct Columns {
    std::size_t step = kAbsent, phase = kAbsent, graph = kAbsent, token = kAbsent;
    std::size_t time = kAbsent;  // begin of an op of the step
  };
  StepWalk(SessionSource& source, const Columns& columns) : source_(source), columns_(columns) {}

  Status begin(const Conditions& conditions);
  // The next step that can match; null at the end.
  Expected<std::shared_ptr<const Step>> next();
  SessionSource& source() { return source_; }

 private:
  bool matches(const Step& step) const;
  SessionSource& source_;
  Columns columns_;
  ColumnConstraint phase_{}, graph_{}, token_{}, time_{};
  std::int64_t at_ = 0, end_ = 0;
};

// Steps [at, end) that a condition allows, whether the session has them or not.
struct StepRange {
  explicit StepRange(const ColumnConstraint& step)
      : at(std::max<std::int64_t>(0, step.from)), end(std::min(step.to, kMaxStep) + 1) {}
  bool empty() const { return at >= end; }
  StepId first() const { return StepId{static_cast<std::uint32_t>(at)}; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(end - at); }

  static constexpr std::int64_t kMaxStep = std::numeric_limits<std::uint32_t>::max() - 1;
  std::int64_t at, end;
};

// The rowid of row `i` of a step.
inline std::int64_t step_row_id(StepId step, std::uint64_t i) {
  return static_cast<std::int64_t>((std::uint64_t{step.v} << 31) + i);
}

}  // namespace tt::sql
