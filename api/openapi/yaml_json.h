// YAML text as JSON, by the core schema of YAML 1.2: what is quoted is a string,
// plain scalars are null, true, false and numbers where they look like it, keys
// are always strings. The order of keys stays.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <string>

namespace tt {

// The error is one sentence with the line. A key that stands twice in a map is
// one: parsers do not agree on which of the two holds.
std::expected<nlohmann::ordered_json, std::string> json_of_yaml(const std::string& text);

}  // namespace tt
