// Quantiles as docs/glossary.md words the rule.
#pragma once

#include <cstddef>
#include <set>

namespace tt::test {

// `values` is not empty.
template <class Value>
Value naive_quantile(const std::multiset<Value>& values, double q) {
  std::size_t not_greater = 0;
  for (const Value value : values)
    if (static_cast<double>(++not_greater) / static_cast<double>(values.size()) >= q) return value;
  return *values.rbegin();
}

}  // namespace tt::test
