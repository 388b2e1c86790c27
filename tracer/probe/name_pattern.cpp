#include "tracer/probe/name_pattern.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <format>
#include <string_view>

#include "tracer/request/request_bounds.h"

namespace tt {

namespace {

constexpr std::size_t kTooMany = kMaxPatternBytes + 1;

// The largest number in "3", "3,5" or "3,".
std::size_t max_repeat(std::string_view counts) {
  std::size_t maximum = 1;
  while (!counts.empty()) {
    std::size_t number = 0;
    const auto read = std::from_chars(counts.data(), counts.data() + counts.size(), number);
    if (read.ec == std::errc::result_out_of_range) return kTooMany;
    maximum = std::max(maximum, number);
    const std::size_t comma = counts.find(',');
    counts.remove_prefix(comma == std::string_view::npos ? counts.size() : comma + 1);
  }
  return maximum;
}

// Upper bound of the pattern's size with all {n} expanded, limited to kTooMany.
std::size_t expanded_size(std::string_view pattern) {
  std::size_t size = pattern.size();
  for (std::size_t at = pattern.find('{'); at != std::string_view::npos;
       at = pattern.find('{', at + 1)) {
    const std::string_view counts = pattern.substr(at + 1, pattern.find('}', at) - at - 1);
    size = std::min(size, kTooMany) * std::min(max_repeat(counts), kTooMany);
  }
  return std::min(size, kTooMany);
}

}  // namespace

std::expected<NamePattern, std::string> NamePattern::compile(const std::string& pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return std::unexpected(
        std::format("has {} bytes; the maximum is {}.", pattern.size(), kMaxPatternBytes));
  }
  if (expanded_size(pattern) > kMaxPatternBytes) {
    return std::unexpected(std::format(
        "is too long: the maximum is {} bytes with all {{n}} expanded.", kMaxPatternBytes));
  }
  if (pattern.contains("(?=") || pattern.contains("(?!")) {
    return std::unexpected("contains a lookahead, which can take too long. Remove (?= and (?!.");
  }
  try {
    // libstdc++'s default executor backtracks: exponential time for "(.*)*!". This one does not.
    constexpr auto kFlags =
        std::regex::ECMAScript | std::regex::nosubs | std::regex_constants::__polynomial;
    (void)std::regex(pattern, kFlags);  // must also be valid without the group around it
    // Match whole names, because regex_search would restart at each character.
    return NamePattern(std::regex(R"([\s\S]*(?:)" + pattern + R"()[\s\S]*)", kFlags));
  } catch (const std::regex_error& wrong) {
    if (wrong.code() == std::regex_constants::error_complexity) {
      return std::unexpected(
          "contains a back reference, which can take too long. Remove \\1 and similar.");
    }
    return std::unexpected(std::format("is not a valid regular expression: {}", wrong.what()));
  }
}

bool NamePattern::matches_name(const std::string& name) const {
  return std::regex_match(name, regex_);
}

}  // namespace tt
