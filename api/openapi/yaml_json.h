// Converts YAML to JSON by the core schema of YAML 1.2: quoted scalars are strings, plain
// scalars are null, true, false or numbers where they match, and keys are always strings. The
// order of keys is kept.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <string>

namespace tt {

// The error is one sentence with the line number. Duplicate keys are an error: parsers
// disagree on which one wins.
std::expected<nlohmann::ordered_json, std::string> json_of_yaml(const std::string& text);

}  // namespace tt
