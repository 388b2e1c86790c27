// Whether the callbacks of the installed libllama still come as the probe
// expects. Neither is documented, and distributions roll: so it is tried at
// every start, on the small bundled model.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

namespace tt {

struct SelfCheck {
  std::size_t ops = 0;  // of one decode
  std::string warning;  // the library is not a tested version; empty: it is
};

// Runs a prompt and two decodes with fast times and again exactly, and compares
// ops, their order and what they read. Some 100 ms. The error says what differs;
// then fast times are not to be trusted: run with exact timing.
std::expected<SelfCheck, std::string> self_check(const std::filesystem::path& model);

}  // namespace tt
