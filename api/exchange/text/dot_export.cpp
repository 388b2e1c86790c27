#include "api/exchange/text/dot_export.h"

#include "analysis/graph/graph_part.h"
#include "api/text/graph_dot.h"

namespace tt::exchange {

std::expected<StepId, TraceError> step_to_draw(const SessionRows& rows,
                                               const ContinueCheck& keep_going) {
  return last_with_graph(rows.reader(), rows.first(), StepId{rows.first().v + rows.steps()},
                         keep_going);
}

WriteResult export_dot(const SessionRows& rows, const ByteSink& sink,
                       const ContinueCheck& keep_going) {
  const auto step = step_to_draw(rows, keep_going);
  if (!step) return std::unexpected(step.error());
  const auto part = part_of_step(rows.reader(), *step, LayerSet::all());
  if (!part) return std::unexpected(part.error());
  return sink(to_dot(*part));
}

}  // namespace tt::exchange
