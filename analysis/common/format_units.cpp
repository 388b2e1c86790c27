#include "analysis/common/format_units.h"

#include <array>
#include <cstddef>
#include <format>

namespace tt {

namespace {

std::string scaled(double value, const auto& units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return std::format("{:.{}f} {}", value, decimals, units[unit]);
}

}  // namespace

std::string format_bytes(double bytes) {
  return scaled(bytes, std::array{"B", "kB", "MB", "GB", "TB", "PB"});
}

std::string format_duration(double ns) { return scaled(ns, std::array{"ns", "us", "ms", "s"}); }

std::string format_percent(double part, double all) {
  return std::format("{:.3g} %", all > 0 ? 100 * part / all : 0.0);
}

}  // namespace tt
