// Parses JSON from clients and files within limits on its shape. They are checked in a pass that
// creates no values, so that a text cannot take much more memory and time than its length:
// brackets alone would take 80 bytes each, and Json compares each new key with all keys of its
// object.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "api/json/json.h"
#include "api/json/problem.h"

namespace tt {

struct JsonLimits {
  std::size_t depth = 64;          // nested arrays and objects
  std::size_t values = 1'000'000;  // in total, including arrays and objects
  std::size_t fields = 64;         // of one object
};

struct JsonError {
  bool limit = false;        // valid so far, but a limit was exceeded
  std::string message;       // a predicate: "is not valid JSON"; "has more than 64 nested ..."
  std::size_t position = 0;  // of the byte that is not valid, from 1
};

std::expected<Json, JsonError> parse_json(std::string_view text, const JsonLimits& limits = {});

// Parses the body of a request, which must be an object. `expected` is the error message for
// other bodies and for invalid JSON. Error BadJson.
std::expected<Json, Problem> parse_json_body(std::string_view body, const char* expected);

}  // namespace tt
