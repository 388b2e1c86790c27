// Models for format tests: dense, MoE, recurrent, and split into several files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/models/traced_model.h"

namespace tt::test {

// Calls `test(shape, file)` for each model. Stops at the first fatal failure.
template <class Test>
void for_each_test_model(Test test) {
  using Model = std::pair<const char*, int>;  // shape, files
  for (const auto& [shape, splits] :
       {Model{"small", 1}, Model{"moe", 1}, Model{"mamba", 1}, Model{"small", 3}}) {
    SCOPED_TRACE(std::string(shape) + " in " + std::to_string(splits));
    test(std::string_view(shape), generated_model({.shape = shape, .splits = splits}));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace tt::test
