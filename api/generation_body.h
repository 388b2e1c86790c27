// The body of POST /api/v1/generate as a request. What is unknown, of another
// type or out of range is refused with the field's name and what it takes:
// nothing is guessed and nothing ignored.
#pragma once

#include <expected>
#include <string_view>

#include "api/problem.h"
#include "tracer/generation.h"

namespace tt {

std::expected<GenerationRequest, Problem> parse_generation_body(std::string_view body);

}  // namespace tt
