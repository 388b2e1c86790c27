// Test cases of one op (or fused pair) on small tensors, for verifying the byte rules
// (kernel_bytes_test.cpp). Every op in the graph of any model must have one (op_coverage.h).
#pragma once

#include <functional>
#include <ostream>
#include <span>

#include "tests/tracer/format/access/op_memory.h"

namespace tt::test {

struct OpCase {
  const char* name;
  std::function<ggml_tensor*(OpScene&)> build;  // returns the last node
};
inline void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

std::span<const OpCase> matrix_cases();
std::span<const OpCase> row_cases();
std::span<const OpCase> move_cases();
std::span<const OpCase> elementwise_cases();
std::span<const OpCase> attention_cases();
std::span<const OpCase> recurrent_cases();

}  // namespace tt::test
