// Where the first value that is not a number comes from, in a session of level VERBOSE. Pure
// functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The first op whose output has NaN or infinity, of those with statistics.
struct InvalidValue {
  StepId step;
  OpId first{};  // the earliest op that may have made it: `op` depends on it, and no op in between
                 // has statistics
  OpId op{};
  std::string op_name{}, tensor{};  // of the output
  LayerId layer = kNoLayer;
  std::uint64_t nan = 0, inf = 0, values = 0;  // of the output; `values`: all of them
  std::vector<std::string> weights{};          // that the ops which may have made it read
};

// In the first step with NaN. Infinity counts there because NaN may come from it. nullopt: no op
// has NaN, or the level was lower.
std::expected<std::optional<InvalidValue>, TraceError> first_invalid_value(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
