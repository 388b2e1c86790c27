#include "analysis/common/tensor_filter.h"

#include <algorithm>
#include <ranges>

namespace tt {

bool matches_pattern(std::string_view text, std::string_view part) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const auto same = [&](char c, char wanted) { return wanted == '?' || lower(c) == lower(wanted); };
  // Finds the parts between the stars in order, each after the previous one.
  for (const auto piece : part | std::views::split('*')) {
    const auto found = std::ranges::search(text, piece, same);
    if (found.empty() && !piece.empty()) return false;
    text = {found.end(), text.end()};
  }
  return true;
}

}  // namespace tt
