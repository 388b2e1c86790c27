// The lists of accesses of what the real engine recorded, against the naive way
// to them (access_check.h): dense, mixture of experts, state space.
#include <gtest/gtest.h>

#include "tests/analysis/access_check.h"
#include "tests/tracer/traced_model.h"

namespace tt::testing {
namespace {

TEST(AccessLists, OfRecordedSessionsAreTheNaiveOnes) {
  for (const char* shape : {"small", "moe", "mamba"}) {
    SCOPED_TRACE(shape);
    modelgen::ModelSpec spec;
    spec.shape = shape;
    spec.dims.layers = 2;
    TracedModel traced(generated_model(spec));
    const auto run = traced.run(greedy_tokens(17, 6));
    ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(seed);
      EXPECT_GT(expect_accesses(run.reader(), seed, 6), 1000U);
    }
  }
}

}  // namespace
}  // namespace tt::testing
