// tt compare of two sets of sessions.
#pragma once

#include <cstddef>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/verdict.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"

namespace tt::cli {

struct CompareSetsOptions {
  Axis by = Axis::OpKind;  // of the rows
  std::size_t limit = 20;
  LeaveOut leave_out = LeaveOut::Nothing;
  bool json = false;
};
// Returns the exit status.
int compare_sets(const SessionFiles& left, const SessionFiles& right,
                 const CompareSetsOptions& options, Progress& progress);

}  // namespace tt::cli
