#include "tests/analysis/comparison_check.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/analysis/naive_sums.h"

namespace tt::testing {
namespace {

bool is_empty(const TraceSums& sums) { return sums == TraceSums{}; }

// One side of the rows of an axis; rows of one name are added up.
void expect_side(const ComparedBy& by, std::optional<TraceSums> ComparedRow::* side,
                 const SessionReader& reader) {
  SCOPED_TRACE(to_text(by.by));
  NaiveSums left = naive_sums(reader, by.by), seen;
  for (const ComparedRow& row : by.rows)
    if (row.*side) seen[row.name] += *(row.*side);
  for (const auto& [name, sums] : seen) {
    SCOPED_TRACE(name);
    expect_equal_sums(sums, left[name]);
    left.erase(name);
  }
  if (by.by == Axis::Tensor) left.erase("");  // ops of which no tensor has the time
  for (const auto& [name, sums] : left) EXPECT_TRUE(is_empty(sums)) << "no row for " << name;
}

std::vector<Token> tokens_of(const SessionReader& reader) {
  return reader.tokens(0, UINT32_MAX).value();
}

}  // namespace

void expect_compared(const ComparedSession& left, const ComparedSession& right) {
  const auto comparison = compare(left, right, {.from = 0, .limit = 1'000'000});
  ASSERT_TRUE(comparison.has_value()) << comparison.error().message;
  std::set<Axis> axes;
  for (const ComparedBy& by : comparison->by) {
    axes.insert(by.by);
    expect_side(by, &ComparedRow::left, left.reader);
    expect_side(by, &ComparedRow::right, right.reader);
  }
  EXPECT_EQ(axes,
            (std::set{Axis::Phase, Axis::Component, Axis::Layer, Axis::OpKind, Axis::Tensor}));
  const auto total = [](const SessionReader& reader) {
    TraceSums sum;
    for (const auto& [name, sums] : naive_sums(reader, Axis::OpKind)) sum += sums;
    return sum;
  };
  expect_equal_sums(comparison->left, total(left.reader));
  expect_equal_sums(comparison->right, total(right.reader));

  const auto a = tokens_of(left.reader), b = tokens_of(right.reader);
  std::uint32_t common = 0;
  while (common < std::min(a.size(), b.size()) && a[common].id == b[common].id) ++common;
  EXPECT_EQ(comparison->tokens.left, a.size());
  EXPECT_EQ(comparison->tokens.right, b.size());
  EXPECT_EQ(comparison->tokens.common, common);
  EXPECT_EQ(comparison->tokens.rows.rows.size(), std::max(a.size(), b.size()));

  const auto expect_once = [&](const SessionReader& reader, TemplateId ComparedTemplate::* id,
                               std::uint32_t ComparedTemplate::* steps) {
    std::map<TemplateId, std::uint32_t> used;
    const auto walk = reader.for_each_step(StepId{0}, kNone, [&](const Step& step) {
      if (step.graph.v != 0) ++used[step.graph];
      return true;
    });
    EXPECT_TRUE(walk.has_value());
    std::map<TemplateId, std::uint32_t> paired;
    for (const ComparedTemplate& one : comparison->templates)
      if ((one.*id).v != 0 && one.*steps > 0) {
        EXPECT_TRUE(paired.emplace(one.*id, one.*steps).second) << (one.*id).v;
      }
    EXPECT_EQ(paired, used);
  };
  expect_once(left.reader, &ComparedTemplate::left, &ComparedTemplate::left_steps);
  expect_once(right.reader, &ComparedTemplate::right, &ComparedTemplate::right_steps);
}

}  // namespace tt::testing
