#include "analysis/tensor_filter.h"

#include <algorithm>

namespace tt {

bool has_part(std::string_view text, std::string_view part) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return !std::ranges::search(text, part, {}, lower, lower).empty() || part.empty();
}

}  // namespace tt
