#include "analysis/aggregate/totals.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/support/sessions/plausible_session.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

using BytesByName = std::map<std::string, double>;

// The naive way: a walk over every access of every step.
struct NaiveTotals {
  BytesByName types, kernels, buffers;
};
NaiveTotals naive_totals(const SessionReader& reader) {
  NaiveTotals sums;
  const auto walked = reader.for_each_step(StepId{0}, kNone, [&](const Step& step) {
    const auto graph = reader.graph(step.graph);
    if (!graph) return true;
    for_each_access(**graph, accesses_of(**graph), step, [&](const StepAccess& access) {
      const Tensor* owner = &(*graph)->tensors[access.tensor.v];
      while (owner->view_of != kNoTensor) owner = &(*graph)->tensors[owner->view_of.v];
      const auto bytes = static_cast<double>(access.touched.v);
      sums.types[owner->type] += bytes;
      sums.buffers[owner->buffer] += bytes;
    });
    return true;
  });
  EXPECT_TRUE(walked.has_value());
  return sums;
}

BytesByName bytes_of(const std::vector<TotalsRow>& rows) {
  BytesByName bytes;
  double before = rows.empty() ? 0 : rows.front().sums.bytes();
  for (const TotalsRow& row : rows) {
    EXPECT_LE(row.sums.bytes(), before) << "largest first";
    before = row.sums.bytes();
    if (before > 0) bytes[row.name] += before;
  }
  return bytes;
}

void expect_near(const BytesByName& seen, BytesByName expected, const char* of) {
  std::erase_if(expected, [](const auto& row) { return row.second == 0; });
  ASSERT_EQ(seen.size(), expected.size()) << of;
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(seen.contains(name)) << of << name;
    EXPECT_NEAR(seen.at(name), bytes, 1e-9 * bytes) << of << name;
  }
}

TEST(Totals, MatchAWalkOverAllAccesses) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    const auto found = totals(*session->reader, *session->index, {});
    ASSERT_TRUE(found.has_value());
    const NaiveTotals expected = naive_totals(*session->reader);
    expect_near(bytes_of(found->types), expected.types, "type ");
    expect_near(bytes_of(found->buffers), expected.buffers, "buffer ");
    // Each access belongs to one kernel.
    double kernels = 0;
    for (const TotalsRow& row : found->kernels) kernels += row.sums.bytes();
    EXPECT_NEAR(kernels, found->total.bytes(), 1e-9 * kernels);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tt::test
