#include "analysis/common/format_units.h"

#include <array>
#include <cstddef>
#include <format>

namespace tt {

namespace {

// `step`: the ratio of a unit to the previous one.
std::string scaled(double value, double step, const auto& units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= step - 0.5) {
    value /= step;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return std::format("{:.{}f} {}", value, decimals, units[unit]);
}

}  // namespace

std::string format_bytes(double bytes) {
  return scaled(bytes, 1024, std::array{"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string format_duration(double ns) {
  return scaled(ns, 1000, std::array{"ns", "µs", "ms", "s"});
}

std::string format_percent(double part, double all) {
  return std::format("{:.3g} %", all > 0 ? 100 * part / all : 0.0);
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

}  // namespace tt
