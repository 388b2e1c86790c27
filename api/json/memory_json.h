// The memory budget of a model as JSON (api/openapi.yaml).
#pragma once

#include <expected>
#include <string_view>

#include "api/json/json.h"
#include "api/json/problem.h"
#include "tracer/request/memory.h"

namespace tt {

Json to_json(const MemoryState& state);
Json to_json(const MemoryMap& map);

// The body of PATCH /api/v1/models/{model}/memory: the fields that it has replace those of
// `current`. Unknown fields and invalid values are rejected.
std::expected<MemoryOptions, Problem> parse_memory_body(std::string_view body,
                                                        const MemoryOptions& current);

}  // namespace tt
