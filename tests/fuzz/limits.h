// Limits for one query on an input: kMaxTime of this process' CPU time, and kMaxGrowth bytes
// of memory beyond what was allocated before. Exceeding a limit prints a message and aborts the
// program; the fuzzer counts this as a finding.
//
// Memory is measured where AddressSanitizer counts it. Time is measured only in fuzzing builds
// (TT_FUZZ), as a replay of the corpus may share its machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tt::fuzz {

inline constexpr std::chrono::milliseconds kMaxTime{1000};
inline constexpr std::size_t kMaxGrowth = std::size_t{256} << 20;

// Applies the limits during its lifetime; one at a time. `what` names the query in a finding.
class Limits {
 public:
  explicit Limits(const char* what);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
};

// Prints the message and aborts: an invariant was violated.
[[noreturn]] void report_finding(const std::string& what);

}  // namespace tt::fuzz
