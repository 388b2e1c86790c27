// Settings of tests with generated cases (docs/fuzzing.md).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <print>

namespace tt::test {

// The environment variable `name` (TT_CASES: number of cases, TT_SEED: the first seed), or `usual`.
// Printed, so that a run can be repeated.
inline std::uint32_t case_setting(const char* name, std::uint32_t usual) {
  const char* given = std::getenv(name);
  const std::uint32_t value =
      given == nullptr ? usual : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
  std::println("{}={}", name, value);
  return value;
}

}  // namespace tt::test
