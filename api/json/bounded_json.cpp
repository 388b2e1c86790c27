#include "api/json/bounded_json.h"

#include <cstdint>
#include <format>
#include <utility>
#include <vector>

namespace tt {

namespace {

// Counts values without creating any. Its functions return false to end the parsing.
class ShapeCheck {
 public:
  explicit ShapeCheck(const JsonLimits& limits) : limits_(limits) {}

  bool null() { return add_value(); }
  bool boolean(bool) { return add_value(); }
  bool number_integer(std::int64_t) { return add_value(); }
  bool number_unsigned(std::uint64_t) { return add_value(); }
  bool number_float(double, const std::string&) { return add_value(); }
  bool string(std::string&) { return add_value(); }
  bool binary(Json::binary_t&) { return add_value(); }
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t) { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string&) {
    return ++fields_.back() <= limits_.fields || exceeded("fields in one object", limits_.fields);
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    position_ = position;
    return false;
  }

  JsonError error() && {
    if (exceeded_.empty())
      return {.limit = false, .message = "is not valid JSON", .position = position_};
    return {.limit = true, .message = std::move(exceeded_)};
  }

 private:
  bool add_value() { return ++values_ <= limits_.values || exceeded("values", limits_.values); }
  bool open() {
    fields_.push_back(0);
    return add_value() && (fields_.size() <= limits_.depth ||
                           exceeded("nested arrays and objects", limits_.depth));
  }
  bool close() {
    fields_.pop_back();
    return true;
  }
  bool exceeded(const char* what, std::size_t limit) {
    exceeded_ = std::format("has more than {} {}", limit, what);
    return false;
  }

  const JsonLimits& limits_;
  std::vector<std::size_t> fields_;  // so far, of each open object; also one for each open array
  std::size_t values_ = 0;
  std::size_t position_ = 0;
  std::string exceeded_;
};

}  // namespace

std::expected<Json, JsonError> parse_json(std::string_view text, const JsonLimits& limits) {
  ShapeCheck check(limits);
  if (!Json::sax_parse(text, &check)) return std::unexpected(std::move(check).error());
  return Json::parse(text, nullptr, false);
}

std::expected<Json, Problem> parse_json_body(std::string_view body, const char* expected) {
  auto json = parse_json(body);
  if (json && json->is_object()) return *std::move(json);
  if (!json && json.error().limit)
    return std::unexpected(Problem{ErrorCode::BadJson, "The body " + json.error().message + "."});
  // From shells, most invalid bodies are texts whose quotes the shell has removed.
  const std::string where =
      json || body.empty()
          ? ""
          : std::format("The body is not valid JSON: see byte {}. ", json.error().position);
  return std::unexpected(Problem{ErrorCode::BadJson, where + expected});
}

}  // namespace tt
