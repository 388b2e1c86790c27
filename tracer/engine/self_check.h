// Checks that the installed libllama calls back as the probe expects. The order of callbacks is
// not documented and may change with a library update, so it is checked at every start, with
// the small bundled model.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

namespace tt {

struct SelfCheck {
  std::size_t ops = 0;  // number of ops of one decode
  std::string warning;  // the library is not a tested version; empty: it is tested
};

// Runs prompts and decodes with fast timing and again with exact timing, and compares templates,
// op counts and slot values. Takes about 100 ms. The error says what differs; then fast times
// are unreliable and exact timing must be used.
std::expected<SelfCheck, std::string> self_check(const std::filesystem::path& model);

}  // namespace tt
