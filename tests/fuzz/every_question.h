// Every question of analysis/ and every export, asked of a session whoever wrote
// it. Answers and errors are both fine; what they have to be is what the tests of
// each question say.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tracer/format/session_reader.h"

namespace tt::fuzz {

// Returns how many of the questions were answered; none is asked of a session whose
// lists have more than a million numbers.
std::uint32_t ask_every_question(const std::filesystem::path& file, const SessionReader& reader);

}  // namespace tt::fuzz
