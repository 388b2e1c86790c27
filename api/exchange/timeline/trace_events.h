// Traces for timeline viewers: Chrome's JSON (chrome://tracing, Speedscope) and
// Perfetto's protobuf (ui.perfetto.dev). Both contain
//   - a track of steps, with the step's ops inside;
//   - counters: bytes per second read and written in a step, tokens so far;
//   - a flow from step to step.
// The Perfetto trace also contains
//   - a track of the tokens that the steps evaluate, and one of the page faults;
//   - one track per layer, component, op kind, memory source, and layer with experts, with marks
//     where its ops begin; they have no duration, so that the durations of all ops are each op
//     once;
//   - flows from each op to the ops of its step that read what it wrote.
// The Chrome trace is compressed (gzip) and has an op once: in JSON, all marks and flows of a
// session of 1,000 tokens would be more than the viewers can open.
#pragma once

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

WriteResult export_chrome(SessionRows& rows, const ByteSink& sink, const ContinueCheck& keep_going);
WriteResult export_perfetto(SessionRows& rows, const ByteSink& sink,
                            const ContinueCheck& keep_going);

}  // namespace tt::exchange
