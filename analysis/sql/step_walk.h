// The steps that a scan reads, one after the other, as its conditions allow.
#pragma once

#include <cstdint>
#include <memory>

#include "analysis/sql/session_source.h"
#include "analysis/sql/virtual_table.h"

namespace tt::sql {

class StepWalk {
 public:
  // Where a table has the columns that tell steps apart; kAbsent: it has none such.
  static constexpr std::size_t kAbsent = SIZE_MAX;
  struct Columns {
    std::size_t step = kAbsent, phase = kAbsent, graph = kAbsent, token = kAbsent;
    std::size_t time = kAbsent;  // when an op of the step began
  };
  StepWalk(SessionSource& source, const Columns& columns) : source_(source), columns_(columns) {}

  Done begin(const Conditions& conditions);
  // Null: there is none left. Those that cannot match are passed over.
  Or<std::shared_ptr<const Step>> next();
  SessionSource& source() { return source_; }

 private:
  bool matches(const Step& step) const;
  SessionSource& source_;
  Columns columns_;
  Wanted phase_{}, graph_{}, token_{}, time_{};
  std::int64_t at_ = 0, end_ = 0;
};

// Row `i` of a step.
inline std::int64_t step_row_id(StepId step, std::uint64_t i) {
  return static_cast<std::int64_t>((std::uint64_t{step.v} << 31) + i);
}

}  // namespace tt::sql
