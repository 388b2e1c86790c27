// Prints the answer of an analysis as text, by the fields that it declares: first the single
// values, then a table for each list of rows.
#pragma once

#include "analysis/fields/schema.h"
#include "analysis/fields/value.h"

namespace tt::cli {

// `schema`: of the value. On standard output.
void print_result(const fields::Value& value, const fields::Schema& schema);

}  // namespace tt::cli
