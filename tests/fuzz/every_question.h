// Every question of analysis/ and every export, asked of a session whoever wrote
// it. Answers and errors are both fine; what they have to be is what the tests of
// each question say.
//
// All of them take a third of a second under the sanitizers, hundreds of times an
// import's own: while a target is fuzzed (TT_FUZZ) an input is asked one of eight parts
// of them, which its bytes choose, so that a finding comes again. A replay asks all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "tracer/format/file/session_reader.h"

namespace tt::fuzz {

// Of the session in `file`, which came of `input`. Returns how many of the questions
// were answered; none is asked of a session whose lists have more than a million numbers.
std::uint32_t ask_every_question(std::span<const std::uint8_t> input,
                                 const std::filesystem::path& file, const SessionReader& reader);

}  // namespace tt::fuzz
