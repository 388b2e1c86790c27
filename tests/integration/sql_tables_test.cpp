// SQL over real recordings, compared row by row with a naive reference implementation
// (sql_check.h): dense, mixture of experts, state space, split model files.
#include <gtest/gtest.h>

#include "tests/analysis/sql/sql_check.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

TEST(SqlTables, MatchReferenceRowsOfRecordedSessions) {
  struct Shape {
    const char* name;
    int splits;
  };
  for (const auto& [name, splits] :
       {Shape{"small", 1}, Shape{"moe", 1}, Shape{"mamba", 1}, Shape{"small", 3}}) {
    SCOPED_TRACE(::testing::Message() << name << " in " << splits);
    TracedModel traced(generated_model({.shape = name, .dims = {.layers = 2}, .splits = splits}));
    const auto run = traced.run(greedy_tokens(17, 6));
    ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
    EXPECT_GT(expect_tables(run.file), 1000U);
    EXPECT_GT(expect_views(run.file), 50U);
    EXPECT_GT(expect_pushed_down(run.file, 7, 15), 1000U);
  }
}

}  // namespace
}  // namespace tt::test
