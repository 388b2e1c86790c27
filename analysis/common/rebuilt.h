// Sessions that were imported from a log without recorded graphs (docs/exports.md): another tracer
// wrote it, or its rows were changed. Their accesses, times and bytes are those of the log. What
// only a graph or the lists of a step can say is unknown.
#pragma once

#include <expected>
#include <format>
#include <string_view>

#include "tracer/format/model/session.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

// The number of steps with a graph that was rebuilt from rows.
inline constexpr const char* kRebuiltStepsFact = "trace.rebuilt_steps";

// An error if the answer needs recorded graphs and the session lacks them. `unknown`: what the
// question asks for, "the graph".
inline std::expected<void, TraceError> needs_recorded_graphs(const SessionInfo& session,
                                                             std::string_view unknown) {
  if (session.fact(kRebuiltStepsFact).empty()) return {};
  return std::unexpected(TraceError{
      TraceError::Kind::NotFound,
      std::format("The session was imported from a log without recorded graphs: {} is unknown. "
                  "Import a log or run folder that `tt export` wrote, without changed rows.",
                  unknown)});
}

}  // namespace tt
