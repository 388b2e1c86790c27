// Where a run stops so that its values can be looked at (tracer/debug/debugger.h). A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tt {

inline constexpr std::size_t kMaxBreakpoints = 32;
inline constexpr std::uint32_t kDefaultHoldMs = 60'000;

struct DebugOptions {
  std::vector<std::string> breakpoints;  // as Breakpoint::parse() reads them
  bool stop_at_first_op = false;
  // How long a stop lasts that nobody looks at or ends; nullopt: until it is ended.
  std::optional<std::uint32_t> hold_ms = kDefaultHoldMs;
};

}  // namespace tt
