// The memory that a model needs, of the graph of the last step that ran to its end.
#include "analysis/findings/model_memory.h"

#include <gtest/gtest.h>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/support/sessions/plausible_session.h"

namespace tt::test {
namespace {

void expect_equal(const ModelMemory& found, const ModelMemory& expected) {
  EXPECT_EQ(found.file, expected.file);
  EXPECT_EQ(found.repacked, expected.repacked);
  EXPECT_EQ(found.kv, expected.kv);
  EXPECT_EQ(found.touched_compute, expected.touched_compute);
}

// A cancelled step may lack layers: a run that was stopped in its second step needs as much memory.
TEST(ModelMemory, IsThatOfTheLastCompleteStep) {
  std::size_t cancelled = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomSession random = plausible_session(seed);
    random.steps.back().aborted = true;
    TemplateId last{};
    for (const Step& step : random.steps)
      if (step.graph.v != 0 && !step.aborted && !step.dropped) last = step.graph;
    if (last.v == 0) continue;
    cancelled += last != random.steps.back().graph;
    const ModelMemory expected = model_memory(random.templates[last.v - 1], random.info);
    const auto session = open_session(random);
    expect_equal(*model_memory(*session->index, *session->reader), expected);
    expect_equal(*model_memory(*session->reader, random.info), expected);
  }
  EXPECT_GT(cancelled, 3U);
}

}  // namespace
}  // namespace tt::test
