// Reads the steps of a session for a query that can fail at any of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <limits>
#include <type_traits>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Calls `visit(step)` for steps that exist, in order. `visit` returns nothing, or an error that
// ends the walk. The result is the first error: of the check before each step (Cancelled), of the
// file or of `visit`.
template <class Visit>
std::expected<void, TraceError> walk_steps(const SessionReader& reader, const PageRange& steps,
                                           const ContinueCheck& keep_going, Visit visit) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  std::expected<void, TraceError> visited;
  const auto read = reader.for_each_step(
      StepId{static_cast<std::uint32_t>(std::min(steps.from, kMax))},
      static_cast<std::uint32_t>(std::min(steps.limit, kMax)), [&](const Step& step) {
        if (!keep_going()) {
          visited = std::unexpected(cancelled_error());
        } else if constexpr (std::is_void_v<std::invoke_result_t<Visit&, const Step&>>) {
          visit(step);
        } else {
          visited = visit(step);
        }
        return visited.has_value();
      });
  return visited ? read : visited;
}

// The same with the graph of each step: `visit(derived, step)`. Null: a step without a template.
template <class Visit>
std::expected<void, TraceError> walk_derived_steps(const SessionReader& reader,
                                                   const PageRange& steps,
                                                   const ContinueCheck& keep_going, Visit visit) {
  DerivedGraphCache graphs(reader);
  return walk_steps(reader, steps, keep_going,
                    [&](const Step& step) -> std::expected<void, TraceError> {
                      const auto derived = graphs.of(step.graph);
                      if (!derived) return std::unexpected(derived.error());
                      visit(*derived, step);
                      return {};
                    });
}

}  // namespace tt
