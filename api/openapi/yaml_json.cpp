#include "api/openapi/yaml_json.h"

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <format>
#include <optional>
#include <string_view>

#include "tracer/text/parse_number.h"

namespace tt {

namespace {

using Json = nlohmann::ordered_json;
using Result = std::expected<Json, std::string>;

// Excludes words such as "inf" and "nan" that parse_number() accepts as numbers.
bool begins_like_a_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
}

Json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true") return true;
  if (text == "false") return false;
  if (const auto whole = parse_number<std::int64_t>(text)) return *whole;
  if (begins_like_a_number(text)) {
    if (const auto real = parse_number<double>(text)) return *real;
  }
  return text;
}

Result convert(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return nullptr;
    case YAML::NodeType::Scalar:
      // yaml-cpp tags plain scalars with "?", quoted and block scalars with "!".
      return node.Tag() == "?" ? plain_scalar(node.Scalar()) : Json(node.Scalar());
    case YAML::NodeType::Sequence: {
      Json list = Json::array();
      for (const YAML::Node& item : node) {
        Result value = convert(item);
        if (!value) return value;
        list.push_back(*std::move(value));
      }
      return list;
    }
    case YAML::NodeType::Map: {
      Json map = Json::object();
      for (const auto& entry : node) {
        const std::string& key = entry.first.Scalar();
        if (map.contains(key)) {
          return std::unexpected(
              std::format("line {}: \"{}\" is a duplicate key.", entry.first.Mark().line + 1, key));
        }
        Result value = convert(entry.second);
        if (!value) return value;
        map[key] = *std::move(value);
      }
      return map;
    }
  }
  return nullptr;
}

}  // namespace

std::expected<Json, std::string> json_of_yaml(const std::string& text) {
  try {
    return convert(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return std::unexpected(std::string(error.what()) + ".");
  }
}

}  // namespace tt
