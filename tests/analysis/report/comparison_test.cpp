// Compares the comparison of two sessions with a walk over every access of both.
#include "analysis/report/comparison.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/report/comparison_causes.h"
#include "tests/analysis/report/comparison_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

constexpr PageRange kAllTokens{.from = 0, .limit = 1'000'000};

struct OpenedSide {
  explicit OpenedSide(const std::filesystem::path& file)
      : reader(SessionReader::open(file).value()), index(SessionIndex::build(reader).value()) {}
  ComparedSession side() const { return {.index = index, .reader = reader}; }
  SessionReader reader;
  SessionIndex index;
};

Comparison compared(const OpenedSide& left, const OpenedSide& right,
                    PageRange tokens = kAllTokens) {
  auto comparison = compare(left.side(), right.side(), tokens);
  EXPECT_TRUE(comparison.has_value()) << comparison.error().message;
  return *std::move(comparison);
}

TEST(Comparison, MatchesReference) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    ASSERT_TRUE(write_session(folder / "a.ttrace", plausible_session(2 * seed)).has_value());
    ASSERT_TRUE(write_session(folder / "b.ttrace", plausible_session(2 * seed + 1)).has_value());
    const OpenedSide left(folder / "a.ttrace"), right(folder / "b.ttrace");
    expect_comparison(left.side(), right.side());
  }
}

TEST(Comparison, SessionEqualsItself) {
  const SmallSession session({small_step(0)});
  const OpenedSide one(session.path);
  const Comparison comparison = compared(one, one);
  EXPECT_EQ(comparison.left, comparison.right);
  for (const ComparedBy& by : comparison.by)
    for (const ComparedRow& row : by.rows) EXPECT_EQ(row.left, row.right) << row.name;
  ASSERT_EQ(comparison.templates.size(), 1U);
  EXPECT_EQ(comparison.templates[0].match, TemplateMatch::Identical);
  EXPECT_EQ(comparison.tokens.common, 2U);
  ASSERT_EQ(comparison.tokens.rows.rows.size(), 2U);
  EXPECT_EQ(comparison.tokens.rows.rows[0].left_ns, Ns{85});  // half of a step of 170 ns
}

TEST(Comparison, DifferentQuantizationHasTheSameOps) {
  GraphTemplate other = small_graph();
  other.fingerprint = 1;
  for (Tensor& tensor : other.tensors)
    if (tensor.name == "output.weight") tensor.type = "q8_0";
  const SmallSession a({small_step(0)}),
      b({small_step(0), small_step(1)}, SmallSession::small_info(), other);
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right);
  EXPECT_EQ(comparison.templates, (std::vector<ComparedTemplate>{{.match = TemplateMatch::SameOps,
                                                                  .left = TemplateId{1},
                                                                  .right = TemplateId{1},
                                                                  .left_steps = 1,
                                                                  .right_steps = 2,
                                                                  .left_ops = 5,
                                                                  .right_ops = 5}}));
  EXPECT_DOUBLE_EQ(comparison.right.executions, 2 * comparison.left.executions);
}

TEST(Comparison, RowsOfOneSideHaveNoCounterpart) {
  GraphTemplate other = small_graph();
  other.fingerprint = 2;
  other.nodes.back().op = "SCALE";
  for (Tensor& tensor : other.tensors)
    if (tensor.name == "output.weight") tensor.name = "lm_head.weight";
  const SmallSession a({small_step(0)}), b({small_step(0)}, SmallSession::small_info(), other);
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right, {.from = 1, .limit = 1});
  ASSERT_EQ(comparison.templates.size(), 2U);
  EXPECT_EQ(comparison.templates[0].match, TemplateMatch::OnlyLeft);
  EXPECT_EQ(comparison.templates[1].match, TemplateMatch::OnlyRight);
  std::map<std::string, std::pair<bool, bool>> sides;
  for (const ComparedBy& by : comparison.by)
    for (const ComparedRow& row : by.rows)
      sides[row.name] = {row.left.has_value(), row.right.has_value()};
  EXPECT_EQ(sides.at("output.weight"), std::pair(true, false));
  EXPECT_EQ(sides.at("lm_head.weight"), std::pair(false, true));
  EXPECT_EQ(sides.at("SCALE"), std::pair(false, true));
  EXPECT_EQ(sides.at("MUL_MAT"), std::pair(true, true));
  ASSERT_EQ(comparison.tokens.rows.rows.size(), 1U);  // the requested page
  EXPECT_EQ(comparison.tokens.rows.rows[0].index, 1U);
  EXPECT_EQ(comparison.tokens.rows.total, 2U);
}

TEST(Comparison, CanBeCancelled) {
  const SmallSession session({small_step(0)});
  const OpenedSide one(session.path);
  EXPECT_EQ(compare(one.side(), one.side(), kAllTokens, [] { return false; }).error().kind,
            TraceError::Kind::Cancelled);
}

SessionInfo described(std::vector<std::pair<std::string, std::string>> facts) {
  SessionInfo info = SmallSession::small_info();
  info.facts = std::move(facts);
  return info;
}

TEST(ComparisonCauses, NamesEachDifference) {
  SessionConditions clean, contended;
  clean.verdict = Verdict::Clean;
  clean.phases[Phase::Prompt].learned = 1;
  contended.verdict = Verdict::Contended;
  contended.text = "contended: ...";
  const SessionInfo a = described({{"model.description", "llama 1B Q4_K"},
                                   {"context.threads", "2"},
                                   {"context.repack", "on"},
                                   {"request.prompt", "Once upon a time there was a tiny house"},
                                   {"request.seed", "1"},
                                   {"result.prompt_tokens", "30"},
                                   {"result.reused_tokens", "0"},
                                   {"host.cpu", "x"},
                                   {"host.memory_available_bytes", "1"},
                                   {"library.llama", "1"}});
  SessionInfo b = described({{"model.description", "llama 1B Q8_0"},
                             {"context.threads", "4"},
                             {"context.repack", "on"},
                             {"request.prompt", "Once"},
                             {"request.seed", "1"},
                             {"result.prompt_tokens", "30"},
                             {"result.reused_tokens", "29"},
                             {"result.reused_from", "S1"},
                             {"host.cpu", "y"},
                             {"host.memory_available_bytes", "2"},
                             {"library.llama", "2"}});
  b.exact_timing = !a.exact_timing;
  EXPECT_EQ(causes_of({.info = a, .conditions = clean}, {.info = a, .conditions = clean}),
            std::vector<std::string>());
  const std::string file = a.model_files.empty() ? "" : a.model_files.front().path;
  const std::string name = file.substr(file.rfind('/') + 1);
  EXPECT_EQ(
      causes_of({.info = a, .conditions = clean}, {.info = b, .conditions = contended}),
      (std::vector<std::string>{
          "Other model: " + name + " (llama 1B Q4_K) and " + name + " (llama 1B Q8_0).",
          "Other settings: threads 2 and 4.",
          "Exact timing in the right session only: it makes every op slower.",
          "Other request: prompt.",
          "Reused prefix: the left session reused none, the right session reused 29 of its 30 "
          "prompt tokens from session S1. Reused tokens are not evaluated.",
          "New graphs: 1 step on the left and 0 on the right had a graph for the first time, which "
          "the recording slows down.",
          "The machine held up the right session: contended: ...", "Other machine: cpu x and y.",
          "Other version of llama.cpp: llama 1 and 2."}));
}

}  // namespace
}  // namespace tt::test
