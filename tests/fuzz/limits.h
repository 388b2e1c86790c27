// What one question about an input may take: kMostTime of this process' time, and
// kMostGrowth bytes more than were held before. Whoever takes more ends the program
// with a word about it, which the fuzzer counts as a finding.
//
// Memory is looked at where AddressSanitizer counts it, time where the program is
// built to fuzz (TT_FUZZ): a replay of the corpus may share its machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tt::fuzz {

inline constexpr std::chrono::milliseconds kMostTime{1000};
inline constexpr std::size_t kMostGrowth = std::size_t{256} << 20;

// Lives as long as a question is answered; one at a time. `what` is said of it.
class Limits {
 public:
  explicit Limits(const char* what);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
};

// Ends the program: what is never to happen did.
[[noreturn]] void finding(const std::string& what);

}  // namespace tt::fuzz
