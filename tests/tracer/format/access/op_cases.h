// One op (or fused pair) on small tensors per case: what the byte rules are held against
// (byte_truth_test.cpp). Every op that occurs in a graph of some model has one (op_coverage.h).
#pragma once

#include <functional>
#include <ostream>
#include <span>

#include "tests/tracer/format/access/op_memory.h"

namespace tt::test {

struct OpCase {
  const char* name;
  std::function<ggml_tensor*(OpScene&)> build;  // gives the last node
};
inline void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

std::span<const OpCase> matrix_cases();
std::span<const OpCase> row_cases();
std::span<const OpCase> move_cases();
std::span<const OpCase> elementwise_cases();
std::span<const OpCase> attention_cases();
std::span<const OpCase> recurrent_cases();

}  // namespace tt::test
