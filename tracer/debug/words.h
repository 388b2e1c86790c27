// Splits a line into words at spaces and tabs.
#pragma once

#include <string_view>
#include <vector>

namespace tt {

inline std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kSpaces); at != line.npos;) {
    const std::size_t end = line.find_first_of(kSpaces, at);
    words.push_back(line.substr(at, end == line.npos ? end : end - at));
    at = end == line.npos ? end : line.find_first_not_of(kSpaces, end);
  }
  return words;
}

}  // namespace tt
