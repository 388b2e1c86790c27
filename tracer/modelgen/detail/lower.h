#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace tt::modelgen {

// ASCII lower case. Names of types and classes are compared case-insensitively.
inline std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace tt::modelgen
