// The body of POST /api/v1/generate as a value. What is unknown, of another
// type or out of range is refused with the field's name and what it takes:
// nothing is guessed and nothing ignored.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "api/json/problem.h"
#include "tracer/request/generation.h"

namespace tt {

struct GenerationBody {
  GenerationRequest request;
  std::string model;    // its id; empty: the loaded one
  bool stream = false;  // answer with server-sent events
};

std::expected<GenerationBody, Problem> parse_generation_body(std::string_view body);

}  // namespace tt
