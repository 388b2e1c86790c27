// What a session read and wrote, by the type of the tensors, by the kernel of the ops and by the
// ggml buffer of the tensors.
#pragma once

#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

struct TotalsRow {
  std::string name;
  TraceSums sums;
};
struct Totals {
  TraceSums total;  // of everything that passes the filter
  // Each sorted by bytes, largest first. Rows of one list do not overlap. Ops without an access are
  // in no type and in no buffer.
  std::vector<TotalsRow> types;    // "Q4_K": of the tensor that owns the bytes
  std::vector<TotalsRow> kernels;  // "repacked"; "unknown": not recorded
  std::vector<TotalsRow> buffers;  // "CPU_REPACK": of the tensor that owns the bytes
  std::uint32_t damaged_steps = 0;
  std::uint64_t left_out_steps = 0;  // of the index; in no sum
};

// `reader`: of the session of the index.
std::expected<Totals, TraceError> totals(const SessionReader& reader, const SessionIndex& index,
                                         const TraceFilter& filter,
                                         const ContinueCheck& keep_going = never_cancel);

Fields<Totals> fields_of(const Totals*);

}  // namespace tt
