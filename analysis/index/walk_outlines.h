// Walks over the steps of a session for queries that need of each step only what its template does
// not say: which parts of which lists it touched (step_decoder.h). Times are not
// decoded and lists of cache cells not expanded, so this takes a fraction of the time of
// walk_derived_steps().
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <format>
#include <limits>

#include "analysis/common/page.h"
#include "analysis/index/step_decoder.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// For a step whose error the reader did not give.
inline TraceError damaged_step(StepId id) {
  return {TraceError::Kind::Damaged, std::format("step {} is damaged", id.v)};
}

// Calls `visit(row, decoder)` for steps that exist and have a template, in order; `decoder`
// describes the step. The result is the first error: of the check before each step (Cancelled), of
// the file, or of `visit`, which returns std::expected<void, TraceError>.
template <class Visit>
std::expected<void, TraceError> walk_outlines(const SessionReader& reader, const PageRange& steps,
                                              const ContinueCheck& keep_going, Visit visit) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  StepDecoder decoder;
  std::expected<void, TraceError> visited;
  StepId unreadable{kNone};
  const auto read = reader.for_each_step_row(
      StepId{static_cast<std::uint32_t>(std::min(steps.from, kMax))},
      static_cast<std::uint32_t>(std::min(steps.limit, kMax)),
      [&](const SessionReader::StepRow& row) {
        if (!keep_going()) {
          visited = std::unexpected(cancelled_error());
        } else if (row.head.graph.v == 0) {
          Step step = row.head;
          if (!unpack_step(row.packed, step) || step.op_ends.size() != row.ops)
            unreadable = row.head.id;
        } else {
          const auto decoded = decoder.take(reader, row, OutlineTimes::Skip);
          if (!decoded) {
            visited = std::unexpected(decoded.error());
          } else if (!*decoded) {
            unreadable = row.head.id;
          } else {
            visited = visit(row, decoder);
          }
        }
        return visited.has_value() && unreadable.v == kNone;
      });
  if (!visited) return visited;
  if (unreadable.v == kNone) return read;
  // The reader says why.
  const auto step = reader.step(unreadable);
  return std::unexpected(step ? damaged_step(unreadable) : step.error());
}

}  // namespace tt
