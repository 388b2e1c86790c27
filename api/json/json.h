// Values as the JSON of api/openapi.yaml: field names in snake_case, times in
// nanoseconds since the session's start, sizes in bytes. Absent is null.
//
// Strings from models and files are bytes and perhaps no UTF-8; text_of()
// replaces what is invalid by U+FFFD, so nothing here throws.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "analysis/common/page.h"
#include "tracer/request/job.h"

namespace tt {

using Json = nlohmann::ordered_json;  // fields in the order of the documentation

std::string text_of(const Json& json);

Json text_or_null(const std::string& text);  // empty: null
Json layer_json(LayerId layer);              // outside the layers: null

Json to_json(const JobStatus& status);

// A page under the name of its rows, each as `row_json` says.
template <class Row, class RowJson>
Json page_json(const char* name, const Page<Row>& page, RowJson row_json) {
  Json rows = Json::array();
  for (const Row& row : page.rows) rows.push_back(row_json(row));
  return {{"total", page.total}, {name, std::move(rows)}};
}

}  // namespace tt
