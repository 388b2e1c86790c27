#include "tracer/probe/name_pattern.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <format>
#include <string_view>

#include "tracer/request/request_bounds.h"

namespace tt {

namespace {

constexpr std::size_t kTooMany = kMostPatternBytes + 1;

// The largest number in "3", "3,5" or "3,".
std::size_t most_of(std::string_view counts) {
  std::size_t most = 1;
  while (!counts.empty()) {
    std::size_t number = 0;
    const auto read = std::from_chars(counts.data(), counts.data() + counts.size(), number);
    if (read.ec == std::errc::result_out_of_range) return kTooMany;
    most = std::max(most, number);
    const std::size_t comma = counts.find(',');
    counts.remove_prefix(comma == std::string_view::npos ? counts.size() : comma + 1);
  }
  return most;
}

// The pattern's size if each {n} stood in the one before, up to kTooMany.
std::size_t written_out(std::string_view pattern) {
  std::size_t size = pattern.size();
  for (std::size_t at = pattern.find('{'); at != std::string_view::npos;
       at = pattern.find('{', at + 1)) {
    const std::string_view counts = pattern.substr(at + 1, pattern.find('}', at) - at - 1);
    size = std::min(size, kTooMany) * std::min(most_of(counts), kTooMany);
  }
  return std::min(size, kTooMany);
}

}  // namespace

std::expected<NamePattern, std::string> NamePattern::compile(const std::string& pattern) {
  if (pattern.size() > kMostPatternBytes) {
    return std::unexpected(
        std::format("has {} bytes; {} are allowed.", pattern.size(), kMostPatternBytes));
  }
  if (written_out(pattern) > kMostPatternBytes) {
    return std::unexpected(std::format(
        "repeats too much: {} bytes are allowed with its {{n}} written out.", kMostPatternBytes));
  }
  if (pattern.contains("(?=") || pattern.contains("(?!")) {
    return std::unexpected("looks ahead, which may take for ever. Leave (?= and (?! out.");
  }
  try {
    // libstdc++'s usual executor goes back, and takes for ever with "(.*)*!"; this one does not.
    constexpr auto kFlags =
        std::regex::ECMAScript | std::regex::nosubs | std::regex_constants::__polynomial;
    (void)std::regex(pattern, kFlags);  // alone, so that nothing of it closes what is around it
    // Searching would begin anew at each character.
    return NamePattern(std::regex(R"([\s\S]*(?:)" + pattern + R"()[\s\S]*)", kFlags));
  } catch (const std::regex_error& wrong) {
    if (wrong.code() == std::regex_constants::error_complexity) {
      return std::unexpected("refers back, which may take for ever. Leave \\1 and the like out.");
    }
    return std::unexpected(std::format("is not a regular expression: {}", wrong.what()));
  }
}

bool NamePattern::is_in(const std::string& name) const { return std::regex_match(name, regex_); }

}  // namespace tt
