// Runs every query of analysis/ and every export on an untrusted session. A result and an error
// are both allowed; the tests of each query check their content.
//
// All of them together take a third of a second under the sanitizers, hundreds of times as long
// as an import. While a target is fuzzed (TT_FUZZ), an input therefore runs one of eight parts.
// A hash of the input selects it, so a finding is reproducible. A replay runs all parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "tracer/format/file/session_reader.h"

namespace tt::fuzz {

// Queries the session in `file`, which was made from `input`. Returns how many queries
// succeeded; 0 for a session whose lists have more than a million numbers: it is skipped.
std::uint32_t run_all_queries(std::span<const std::uint8_t> input,
                              const std::filesystem::path& file, const SessionReader& reader);

}  // namespace tt::fuzz
