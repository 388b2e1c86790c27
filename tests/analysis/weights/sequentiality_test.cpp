#include "analysis/weights/sequentiality.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/support/sessions/plausible_session.h"

namespace tt::test {
namespace {

TEST(Sequentiality, MatchesReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    const std::uint64_t gap = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 100 : kDefaultGap;
    TraceFilter filter;
    if (seed % 4 == 1) filter.phase = Phase::Generate;
    if (seed % 5 == 1) filter.layers = {LayerId{0}};
    expect_read_order(*session->reader, *session->index, filter, gap);
  }
}

}  // namespace
}  // namespace tt::test
