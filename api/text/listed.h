// A list in a sentence. Pure function.
#pragma once

#include <string>
#include <vector>

#include "tracer/text/join.h"

namespace tt {

// "a", "a and b", "a, b and c".
inline std::string listed(const std::vector<std::string>& parts) {
  if (parts.size() < 2) return parts.empty() ? "" : parts.front();
  return join(std::vector(parts.begin(), parts.end() - 1)) + " and " + parts.back();
}

}  // namespace tt
