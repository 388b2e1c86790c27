// What every import owes: a sound session, or nothing and a reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "api/exchange/import/import.h"
#include "tests/fuzz/every_question.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/scratch.h"

namespace tt::fuzz {

// `import` writes into `session` what it makes of `input`.
template <class Import>
void expect_sound(std::span<const std::uint8_t> input, Import import,
                  const std::filesystem::path& session) {
  const auto imported = [&] {
    const Limits limits("import");
    return import();
  }();
  if (!imported) {
    if (imported.error().message.empty()) finding("an import failed without a word");
    if (std::filesystem::exists(session)) finding("an import failed, and left a session");
    return;
  }
  const auto problems = check_session(session);
  if (!problems || !problems->empty()) finding("an import made a session that is not sound");
  const auto reader = SessionReader::open(session);
  if (!reader) finding("an import made a session that cannot be opened");
  ask_every_question(input, session, *reader);
}

}  // namespace tt::fuzz
