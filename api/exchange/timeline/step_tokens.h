// The text of the tokens that a step evaluates, as a label. Private to the timeline exporters.
#pragma once

#include <expected>
#include <string>

#include "tracer/format/file/session_reader.h"

namespace tt::exchange {

// Valid UTF-8. Of a long prompt only the first tokens, and then "...".
std::expected<std::string, TraceError> text_of_tokens(const SessionReader& reader,
                                                      const Step& step);

}  // namespace tt::exchange
