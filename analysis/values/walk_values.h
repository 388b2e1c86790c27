// Reads the captured values of a session for a query.
#pragma once

#include <expected>

#include "analysis/common/walk_steps.h"

namespace tt {

// Calls `visit(graph, step, values)` for the steps with captured values, in order. The result is
// the first error, as of walk_steps().
template <class Visit>
std::expected<void, TraceError> walk_values(const SessionReader& reader,
                                            const ContinueCheck& keep_going, Visit visit) {
  return walk_steps(
      reader, kAllRows, keep_going, [&](const Step& step) -> std::expected<void, TraceError> {
        std::expected<void, TraceError> done;
        const auto read = reader.for_each_values(step.id, 1, [&](const StepValues& of) {
          if (of.outputs.empty()) return true;
          const auto graph = reader.graph(step.graph);
          if (graph)
            visit(**graph, step, of);
          else
            done = std::unexpected(graph.error());
          return graph.has_value();
        });
        return read ? done : read;
      });
}

}  // namespace tt
