// The parsed body of POST /api/v1/generate. Unknown fields, wrong types and values out of
// range are rejected with the field's name and the expected value. Nothing is ignored.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "api/json/problem.h"
#include "tracer/request/generation.h"

namespace tt {

struct GenerationBody {
  GenerationRequest request;
  std::string tools, chat_template_kwargs;  // moved into the conversation
  std::string model;                        // model id; empty: the loaded model
  bool stream = false;                      // respond with server-sent events
};

std::expected<GenerationBody, Problem> parse_generation_body(std::string_view body);

}  // namespace tt
