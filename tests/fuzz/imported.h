// Checks the contract of every import: a valid session, or no file and an error message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "api/exchange/import/import.h"
#include "tests/fuzz/all_queries.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/scratch.h"

namespace tt::fuzz {

// `import` converts `input` and writes the result to `session`.
template <class Import>
void expect_valid_session(std::span<const std::uint8_t> input, Import import,
                          const std::filesystem::path& session) {
  const auto imported = [&] {
    const Limits limits("import");
    return import();
  }();
  if (!imported) {
    if (imported.error().message.empty())
      report_finding("an import failed without an error message");
    if (std::filesystem::exists(session))
      report_finding("an import failed but left a session file");
    return;
  }
  const auto problems = check_session(session);
  if (!problems || !problems->empty()) report_finding("an import wrote an invalid session");
  const auto reader = SessionReader::open(session);
  if (!reader) report_finding("an import wrote a session that cannot be opened");
  run_all_queries(input, session, *reader);
}

}  // namespace tt::fuzz
