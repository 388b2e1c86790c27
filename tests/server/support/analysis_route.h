// The route of a question of analysis/analyses.h, below that of the session.
#pragma once

#include <ranges>
#include <string>
#include <string_view>

#include "analysis/analyses.h"

namespace tt::test {

// "experts/layers/{layer}" and "layer=0 pairs=3": "experts/layers/0?pairs=3".
inline std::string route_of(std::string route, const std::string& values) {
  std::string query;
  for (const auto word : std::views::split(values, ' ')) {
    const std::string value(std::string_view{word});
    if (value.empty()) continue;
    const std::string name = "{" + value.substr(0, value.find('=')) + "}";
    if (const auto at = route.find(name); at != std::string::npos) {
      route.replace(at, name.size(), value.substr(value.find('=') + 1));
    } else {
      query += (query.empty() ? "?" : "&") + value;
    }
  }
  return route + query;
}
inline std::string route_of(const Analysis& row, const std::string& values) {
  return route_of(std::string(row.path), values);
}

}  // namespace tt::test
