// Captured values as files of numpy and safetensors (docs/values.md).
#pragma once

#include <expected>
#include <string>

#include "analysis/values/captured_outputs.h"
#include "api/exchange/rows/byte_sink.h"
#include "tracer/format/file/session_reader.h"

namespace tt::exchange {

// The file format of numpy.save(), version 1.0, of the values as they are stored.
std::string npy_of(const OutputValues& values);

// The selected outputs as arrays called "step0.op17.l_out-3". The session is read twice, one step
// at a time: the arrays follow a list of them.
std::expected<void, TraceError> write_safetensors(const SessionReader& reader,
                                                  const CapturedSelection& selection,
                                                  const ByteSink& sink,
                                                  const ContinueCheck& keep_going);

}  // namespace tt::exchange
