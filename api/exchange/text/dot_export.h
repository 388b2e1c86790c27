// The graph of a session as DOT. One: Graphviz draws one graph of a file well.
#pragma once

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// The last step of the range whose graph was recorded. NotFound: none.
std::expected<StepId, TraceError> step_to_draw(const SessionRows& rows,
                                               const KeepGoing& keep_going = always);

// All layers of that graph (api/text/graph_dot.h); `tt graph` draws parts.
Written export_dot(const SessionRows& rows, const ByteSink& sink, const KeepGoing& keep_going);

}  // namespace tt::exchange
