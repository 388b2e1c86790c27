// Rows of analysis/columns as JSON objects: one field per column, absent values are null.
#pragma once

#include <string>
#include <string_view>

#include "analysis/columns/column.h"
#include "api/json/json.h"

namespace tt {

// Receives the value of one column.
class JsonOutput {
 public:
  explicit JsonOutput(Json& value) : value_(value) {}
  void null() { value_ = nullptr; }
  void flag(bool v) { value_ = v; }
  void integer(std::int64_t v) { value_ = v; }
  void count(std::uint64_t v) { value_ = v; }
  void real(float v) { value_ = v; }
  void text(std::string_view v) { value_ = std::string(v); }
  void text_copy(const std::string& v) { value_ = v; }

 private:
  Json& value_;
};

// The columns of `table`, except those that have the same value in all rows of a session.
template <auto table, class Row>
Json row_json(const Row& row) {
  static constexpr auto kColumns = columns::bind<Row, JsonOutput>(table());
  Json::object_t fields;
  fields.reserve(kColumns.size());
  for (const auto& column : kColumns) {
    if (!column.in_rest()) continue;
    // emplace_back() instead of operator[], which searches the fields that are there.
    JsonOutput out(fields.emplace_back(column.name, nullptr).second);
    column.value(row, out);
  }
  return fields;
}

}  // namespace tt
