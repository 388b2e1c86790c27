// Values as JSON of api/openapi.yaml: field names in snake_case, times in nanoseconds since
// the session start, sizes in bytes. Absent values are null.
//
// Strings from models and files may be invalid UTF-8. text_of() replaces invalid bytes with
// U+FFFD, so nothing here throws.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/common/page.h"
#include "tracer/request/job.h"

namespace tt {

using Json = nlohmann::ordered_json;  // keeps the order of fields

std::string text_of(const Json& json);

// The start of a name from a client, for an error message.
std::string shortened(std::string_view name);

Json text_or_null(const std::string& text);      // empty: null
Json finite_json(std::optional<double> number);  // null: none, NaN or infinite, which JSON lacks
template <class Value>
Json optional_json(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}
Json layer_json(LayerId layer);  // outside of layers: null

Json to_json(const JobStatus& status);

// A page of rows; `row_json` converts one row.
template <class Row, class RowJson>
Json page_json(const char* name, const Page<Row>& page, RowJson row_json) {
  Json rows = Json::array();
  for (const Row& row : page.rows) rows.push_back(row_json(row));
  return {{"total", page.total}, {name, std::move(rows)}};
}

}  // namespace tt
