// The names of a log's events and fields: those of our logs, those that other tracers use for the
// same, and those that a session cannot keep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/json/json.h"

namespace tt::exchange {

// One line of a log in our names.
struct LogEntry {
  std::string event;
  Json fields;
  std::vector<std::string> unknown;  // "tensor_log.shape": not kept
};

// `line`: the text of `parsed`, an object. If it has `type` twice, the first one is the event and
// the second one the type of the tensor.
LogEntry log_entry(const Json& parsed, std::string_view line);

}  // namespace tt::exchange
