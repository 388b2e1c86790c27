// Human-readable values: at least three significant digits and a unit. Pure functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "tracer/format/model/ids.h"

namespace tt {

// "1.50 GiB", "310 KiB", "12 B": binary units, powers of 1024.
std::string format_bytes(double bytes);
std::string format_bytes(std::integral auto bytes) {
  return format_bytes(static_cast<double>(bytes));
}
inline std::string format_bytes(Bytes bytes) { return format_bytes(bytes.v); }
// "1.25 s", "31.2 ms", "870 µs", "90 ns".
std::string format_duration(double ns);
std::string format_duration(std::integral auto ns) {
  return format_duration(static_cast<double>(ns));
}
inline std::string format_duration(Ns ns) { return format_duration(ns.v); }
// "12.5 %"; "0 %" if `all` is not positive.
std::string format_percent(double part, double all);
// "1 step", "2 steps".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace tt
