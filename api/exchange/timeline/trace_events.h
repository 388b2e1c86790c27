// Traces for timeline viewers: Chrome's JSON (chrome://tracing, Speedscope) and
// Perfetto's protobuf (ui.perfetto.dev). Both contain
//   - a track of steps, with the step's ops inside;
//   - one track per layer, per op kind and per memory source, with marks where its ops begin; they
//     have no duration, so that the durations of all ops are each op once;
//   - counters: bytes per second read and written in a step, tokens so far;
//   - flows: from step to step, and within a step from layer to layer.
#pragma once

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

WriteResult export_chrome(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going);
WriteResult export_perfetto(SessionRows& rows, const ByteSink& sink,
                            const ContinueCheck& keep_going);

}  // namespace tt::exchange
