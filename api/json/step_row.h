// A step as a row of analysis/columns (step_columns.h lists the accessors): for both forms of the
// list of steps, JSON and columns.
#pragma once

#include <cstdint>

#include "analysis/tables/step_summary.h"

namespace tt {

struct StepColumnsRow {
  const StepSummary& row;
  const StepFacts& step() const { return row; }
  std::uint64_t ops_timed() const { return row.ops_timed; }
  std::uint64_t accesses() const { return row.accesses; }
  Bytes read() const { return row.read; }
  Bytes written() const { return row.written; }
  Bytes mapped() const { return row.mapped; }
};

}  // namespace tt
