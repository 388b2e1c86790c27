// Enum values by name, for options with enum values.
#pragma once

#include <map>
#include <string>

namespace tt::cli {

// The values from 0 to `last` for which `allowed` is true.
template <class Enum>
std::map<std::string, Enum> enum_names(Enum last, auto allowed) {
  std::map<std::string, Enum> out;
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (const auto value = static_cast<Enum>(i); allowed(value)) out[to_text(value)] = value;
  return out;
}
template <class Enum>
std::map<std::string, Enum> enum_names(Enum last) {
  return enum_names(last, [](Enum) { return true; });
}

}  // namespace tt::cli
