#include "analysis/weights/pattern.h"

#include <gtest/gtest.h>

#include "tests/analysis/tables/order_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

Step generated(std::uint32_t id, std::vector<std::int64_t> rows) {
  Step step = small_step(id);
  step.phase = Phase::Generate;
  step.slots = {SlotValues{.ints = std::move(rows), .floats = {}}};
  return step;
}

Determinism determinism_of(const std::vector<Step>& steps) {
  const SmallSession session(steps);
  const auto reader = SessionReader::open(session.path);
  EXPECT_TRUE(reader.has_value());
  const auto found = determinism(*reader);
  EXPECT_TRUE(found.has_value());
  return *found;
}

TEST(Determinism, SameTokenTouchesSameBytes) {
  const Determinism found =
      determinism_of({small_step(0), generated(1, {3, 5}), generated(2, {3, 5})});
  EXPECT_EQ(found.pairs, 1U) << "prompt steps are excluded";
  EXPECT_EQ(found.identical, 1U);
  EXPECT_EQ(found.same_weights, 1U);
  EXPECT_TRUE(found.firsts.empty());
}

TEST(Determinism, DifferentTokenReadsDifferentRow) {
  const Determinism found =
      determinism_of({generated(0, {3, 5}), generated(1, {3, 5}), generated(2, {4, 5})});
  EXPECT_EQ(found.pairs, 2U);
  EXPECT_EQ(found.identical, 1U);
  EXPECT_EQ(found.same_weights, 2U);
  EXPECT_EQ(found.differing[static_cast<std::size_t>(Cause::Token)], 1U);
  ASSERT_EQ(found.firsts.size(), 1U);
  EXPECT_EQ(found.firsts[0].step, StepId{2});
  EXPECT_EQ(found.firsts[0].before, StepId{1});
  EXPECT_EQ(found.firsts[0].op, OpId{0});
  EXPECT_EQ(found.firsts[0].tensor, "token_embd.weight");
  EXPECT_STREQ(to_text(found.firsts[0].cause), "token");
}

TEST(Determinism, ReportsCancelledStep) {
  Step cancelled = generated(1, {3, 5});
  cancelled.op_ends.resize(2);
  cancelled.aborted = true;
  const Determinism found = determinism_of({generated(0, {3, 5}), cancelled});
  EXPECT_EQ(found.same_weights, 0U);
  EXPECT_GT(found.differing[static_cast<std::size_t>(Cause::Unfinished)], 0U);
}

TEST(AccessPattern, LearnsFromFirstHalfAndTestsOnSecond) {
  const SmallSession session(
      {generated(0, {3, 5}), generated(1, {3, 5}), generated(2, {3, 5}), generated(3, {3, 7})});
  const auto reader = SessionReader::open(session.path);
  ASSERT_TRUE(reader.has_value());
  const auto pattern = access_pattern(*reader);
  ASSERT_TRUE(pattern.has_value());
  ASSERT_EQ(pattern->entries.size(), 5U);
  using Kind = ReadKind;
  EXPECT_EQ(pattern->entries[0], (PatternEntry{.kind = Kind::Row,
                                               .tensor = "token_embd.weight",
                                               .op = OpId{0},
                                               .file = {.file = 0, .offset = 1000, .length = 512},
                                               .part_bytes = Bytes{32},
                                               .parts = 2,
                                               .layer = kNoLayer,
                                               .component = Component::Embedding}));
  EXPECT_EQ(pattern->entries[2].kind, Kind::Fixed);
  EXPECT_EQ(pattern->entries[2].tensor, "blk.0.attn_q.weight");
  EXPECT_EQ(pattern->entries[2].file, (FileRange{.file = 0, .offset = 3000, .length = 256}));
  // Six reads per step; the last step reads a different embedding row than the step before.
  EXPECT_EQ(pattern->prediction.steps_learned, 2U);
  EXPECT_EQ(pattern->prediction.steps_tried, 2U);
  EXPECT_EQ(pattern->prediction.reads, 12U);
  EXPECT_EQ(pattern->prediction.right, 11U);
  EXPECT_EQ(pattern->prediction.bytes.v - pattern->prediction.right_bytes.v, 32U);
}

TEST(AccessPattern, MatchesReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const bool plausible = seed % 2 == 0;
    ASSERT_TRUE(write_session(folder / "s.ttrace",
                              plausible ? plausible_session(seed) : random_session(seed))
                    .has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    expect_pattern(*reader);
  }
}

TEST(AccessPattern, CanBeCancelled) {
  const SmallSession session({generated(0, {3, 5}), generated(1, {3, 5})});
  const SessionReader reader = session.reader();
  const auto cancel = [] { return false; };
  for (const auto kind :
       {determinism(reader, cancel).error().kind, access_pattern(reader, cancel).error().kind})
    EXPECT_EQ(kind, TraceError::Kind::Cancelled);
}

TEST(AccessPattern, IsEmptyWithoutGeneratedTokens) {
  const SmallSession session({small_step(0)});
  const auto reader = SessionReader::open(session.path);
  ASSERT_TRUE(reader.has_value());
  const auto pattern = access_pattern(*reader);
  ASSERT_TRUE(pattern.has_value());
  EXPECT_TRUE(pattern->entries.empty());
  EXPECT_EQ(pattern->prediction.accuracy(), 0);
}

}  // namespace
}  // namespace tt::test
