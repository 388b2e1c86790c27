// Number and first seed of generated cases (docs/fuzzing.md).
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <print>
#include <string_view>

namespace tt::test {

struct GeneratedCases {
  std::uint32_t count;
  std::uint32_t first_seed = 1;

  // Prints them, so that a failure can be repeated.
  explicit GeneratedCases(std::uint32_t default_count) : count(default_count) {
    read("TT_CASES", count);
    read("TT_SEED", first_seed);
    std::println("TT_CASES={} TT_SEED={}", count, first_seed);
  }

 private:
  static void read(const char* name, std::uint32_t& out) {
    if (const char* given = std::getenv(name)) {
      const std::string_view text(given);
      std::from_chars(text.data(), text.data() + text.size(), out);
    }
  }
};

}  // namespace tt::test
