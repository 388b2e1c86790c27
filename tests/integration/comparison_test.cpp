// Compares recordings of one model with different settings: flash attention, batch size, number
// of threads.
#include "analysis/report/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/analysis/report/comparison_check.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

struct Recorded {
  explicit Recorded(const std::function<void(ContextOptions&)>& change)
      : model(generated_model(spec()), context(change)),
        run(model.run(greedy_tokens(21, 7))),
        reader(run.reader()),
        index(SessionIndex::build(reader).value()) {}
  static modelgen::ModelSpec spec() { return {.shape = "small", .dims = {.layers = 2}}; }
  static ContextOptions context(const std::function<void(ContextOptions&)>& change) {
    ContextOptions context = TracedModel::small_context();
    change(context);
    return context;
  }
  ComparedSession side() const { return {.index = index, .reader = reader}; }

  TracedModel model;
  TracedModel::Run run;
  SessionReader reader;
  SessionIndex index;
};

Comparison compare_and_check(const Recorded& left, const Recorded& right) {
  expect_comparison(left.side(), right.side());
  return compare(left.side(), right.side(), {.from = 0, .limit = 1000}).value();
}

std::map<std::string, ComparedRow> rows_on_axis(const Comparison& comparison, Axis axis) {
  std::map<std::string, ComparedRow> rows;
  for (const ComparedBy& by : comparison.by)
    for (const ComparedRow& row : by.rows)
      if (by.by == axis) rows[row.name] = row;
  return rows;
}

TEST(RecordedComparison, ComparesFlashAttentionOnAndOff) {
  const Recorded off([](ContextOptions& c) { c.flash_attention = FlashAttention::Off; });
  const Recorded on([](ContextOptions& c) { c.flash_attention = FlashAttention::On; });
  const Comparison comparison = compare_and_check(off, on);
  const auto kinds = rows_on_axis(comparison, Axis::OpKind);
  ASSERT_TRUE(kinds.contains("SOFT_MAX"));
  ASSERT_TRUE(kinds.contains("FLASH_ATTN_EXT"));
  EXPECT_TRUE(kinds.at("SOFT_MAX").left && !kinds.at("SOFT_MAX").right);
  EXPECT_TRUE(kinds.at("FLASH_ATTN_EXT").right && !kinds.at("FLASH_ATTN_EXT").left);
  for (const ComparedTemplate& pair : comparison.templates)
    EXPECT_TRUE(pair.match == TemplateMatch::OnlyLeft || pair.match == TemplateMatch::OnlyRight);
  EXPECT_GE(comparison.tokens.common, 21U);
  const ComparedFact switched{.name = "context.flash_attention", .left = "off", .right = "on"};
  EXPECT_EQ(std::ranges::count(comparison.facts, switched), 1);
  // The weights of the layers are read equally often.
  int weights = 0;
  for (const auto& [name, row] : rows_on_axis(comparison, Axis::Tensor)) {
    if (!name.starts_with("blk.")) continue;
    ASSERT_TRUE(row.left && row.right) << name;
    EXPECT_DOUBLE_EQ(row.left->bytes_read, row.right->bytes_read) << name;
    ++weights;
  }
  EXPECT_GT(weights, 10);
}

TEST(RecordedComparison, ComparesPromptInOneAndTwoBatches) {
  const Recorded two([](ContextOptions& c) { c.ubatch = 16; });
  const Recorded one([](ContextOptions& c) { c.ubatch = 64; });
  const Comparison comparison = compare_and_check(two, one);
  const auto phases = rows_on_axis(comparison, Axis::Phase);
  const ComparedRow &prompt = phases.at(to_text(Phase::Prompt)),
                    &generate = phases.at(to_text(Phase::Generate));
  EXPECT_GT(prompt.left->executions, 1.5 * prompt.right->executions);
  EXPECT_GT(prompt.left->bytes_read, prompt.right->bytes_read);
  EXPECT_DOUBLE_EQ(generate.left->executions, generate.right->executions);
  for (const ComparedToken& token : comparison.tokens.rows.rows)
    EXPECT_EQ(token.left_ns.has_value(), token.right_ns.has_value()) << token.index;
}

TEST(RecordedComparison, ThreadCountChangesOnlyTimes) {
  const Recorded one([](ContextOptions& c) { c.threads = c.threads_batch = 1; });
  const Recorded more([](ContextOptions& c) { c.threads = c.threads_batch = 2; });
  const Comparison comparison = compare_and_check(one, more);
  EXPECT_EQ(comparison.tokens.common, comparison.tokens.left);
  EXPECT_EQ(comparison.tokens.left, comparison.tokens.right);
  const ComparedFact threads{.name = "context.threads", .left = "1", .right = "2"};
  EXPECT_EQ(std::ranges::count(comparison.facts, threads), 1);
  EXPECT_EQ(std::ranges::count(comparison.facts, "context.size", &ComparedFact::name), 0);
  EXPECT_GT(comparison.templates.size(), 1U);
  for (const ComparedTemplate& pair : comparison.templates) {
    EXPECT_EQ(pair.match, TemplateMatch::Identical);
    EXPECT_EQ(pair.left_steps, pair.right_steps);
  }
  for (const ComparedBy& by : comparison.by) {
    for (const ComparedRow& row : by.rows) {
      ASSERT_TRUE(row.left && row.right) << row.name;
      EXPECT_DOUBLE_EQ(row.left->bytes(), row.right->bytes()) << row.name;
      EXPECT_DOUBLE_EQ(row.left->executions, row.right->executions) << row.name;
    }
  }
}

}  // namespace
}  // namespace tt::test
