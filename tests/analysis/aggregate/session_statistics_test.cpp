#include "analysis/aggregate/session_statistics.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/statistics_check.h"
#include "tests/support/sessions/plausible_session.h"

namespace tt::test {
namespace {

TEST(SessionStatistics, MatchReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    const auto expect = [&](const StatisticsQuery& query) {
      expect_statistics(*session->reader, *session->index, query);
    };
    expect({});
    const std::uint64_t steps = session->index->steps().size();
    Dice dice(seed);
    for (int i = 0; i < 5; ++i)
      expect({.steps = {dice.below(steps), dice.below(steps + 2)},
              .layers = {.ranges = {{.first = static_cast<std::int32_t>(dice.below(2)), .last = 1}},
                         .outside = dice.one_in(2)}});
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tt::test
