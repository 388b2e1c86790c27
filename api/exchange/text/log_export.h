// The log: one JSON object per line with its kind in `event`: session_start, step_begin,
// tensor_log, step_end, session_end. docs/exports.md lists the fields.
#pragma once

#include <cstdint>

#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// Minimal: no tensor_log. Detailed: one tensor_log per access. Verbose: also the value
// statistics of the op's output at its write.
enum class LogLevel : std::uint8_t { Minimal, Detailed, Verbose };

WriteResult export_log(SessionRows& rows, LogLevel level, const ByteSink& sink,
                       const ContinueCheck& keep_going);

}  // namespace tt::exchange
