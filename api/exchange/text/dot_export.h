// Exports one graph of a session as DOT, because Graphviz renders only one graph per file
// well.
#pragma once

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// The last step of the range that has a recorded graph. NotFound if there is none.
std::expected<StepId, TraceError> step_to_draw(const SessionRows& rows,
                                               const ContinueCheck& keep_going = never_cancel);

// Exports all layers of that graph (api/text/graph_dot.h); `tt graph` exports parts.
WriteResult export_dot(const SessionRows& rows, const ByteSink& sink,
                       const ContinueCheck& keep_going);

}  // namespace tt::exchange
