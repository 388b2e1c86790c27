// Results of analyses as JSON: the fields that analysis/ declares for them.
#pragma once

#include "analysis/fields/fields.h"
#include "api/json/json.h"

namespace tt {

// A number that is whole is written as 7, not 7.0, like all other counts and sizes.
Json number_json(double value);
Json json_of(const fields::Value& value);

template <fields::Declared Result>
Json to_json(const Result& result) {
  return json_of(fields::value_of(result));
}

}  // namespace tt
