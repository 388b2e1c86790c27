// Iterates over the steps of a scan, skipping steps that its conditions exclude.
#pragma once

#include <cstdint>
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

// The rowid of row `i` of a step.
inline std::int64_t step_row_id(StepId step, std::uint64_t i) {
  return static_cast<std::int64_t>((std::uint64_t{step.v} << 31) + i);
}

}  // namespace tt::sql
