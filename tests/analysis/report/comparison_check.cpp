#include "tests/analysis/report/comparison_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/analysis/aggregate/naive_sums.h"

namespace tt::test {
namespace {

bool is_empty(const TraceSums& sums) { return sums == TraceSums{}; }

// Steps of the phase that have accesses.
double steps_of(const SessionReader& reader, Phase phase) {
  double steps = 0;
  const auto walk = reader.for_each_step(StepId{0}, kNone, [&](const Step& step) {
    steps += step.phase == phase && step.graph.v != 0;
    return true;
  });
  EXPECT_TRUE(walk.has_value());
  return steps;
}

// The sums of the phase, divided by its steps. The times are checked in step_times_test.cpp.
NaiveSums naive_means(const SessionReader& reader, Axis by, Phase phase) {
  NaiveSums means = naive_sums(reader, by, phase);
  for (auto& [name, sums] : means) {
    sums = sums / std::max(1.0, steps_of(reader, phase));
    sums.time_ns = 0;
  }
  return means;
}

TraceSums without_time(TraceSums sums) {
  sums.time_ns = 0;
  return sums;
}

// Checks one side of the rows of an axis; rows of the same name are added.
void expect_side(const std::vector<ComparedRow>& rows, Axis by, Phase phase,
                 std::optional<TraceSums> ComparedRow::* side, const ComparedSession& session) {
  SCOPED_TRACE(to_text(by));
  NaiveSums left = naive_means(session.reader, by, phase), seen;
  for (const ComparedRow& row : rows)
    if (row.*side) seen[row.name] += without_time(*(row.*side));
  for (const auto& [name, sums] : seen) {
    SCOPED_TRACE(name);
    expect_equal_sums(sums, left[name]);
    left.erase(name);
  }
  if (by == Axis::Tensor) left.erase("");  // ops whose time belongs to no tensor
  for (const auto& [name, sums] : left) EXPECT_TRUE(is_empty(sums)) << "missing row for " << name;
  // Rows with equal names are in the order of the session.
  const auto found =
      breakdown(session.index, {.by = by, .filter = {.phase = phase}, .step_times = true});
  ASSERT_TRUE(found.has_value());
  std::map<std::string, double> times, medians;
  for (const ComparedRow& row : rows)
    if (row.*side) times[row.name] += (row.*side)->time_ns;
  for (const BreakdownRow& row : found->rows)
    medians[row.name] += row.step ? static_cast<double>(row.step->spread.median.v) : 0;
  EXPECT_EQ(times, medians);
}

std::vector<Token> tokens_of(const SessionReader& reader) {
  return reader.tokens(0, UINT32_MAX).value();
}

// The time of each token: an equal share of its step.
std::map<std::uint32_t, Ns> times_of(const SessionReader& reader) {
  std::map<std::uint32_t, Ns> times;
  const auto walk = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    for (std::uint32_t i = 0; i < step.n_tokens; ++i)
      times[step.first_token + i] = Ns{(step.end.v - step.begin.v) / step.n_tokens};
    return true;
  });
  EXPECT_TRUE(walk.has_value());
  return times;
}

void expect_tokens(const TokenAlignment& aligned, const SessionReader& left,
                   const SessionReader& right) {
  const auto expect_side = [&](const SessionReader& reader,
                               std::optional<Token> ComparedToken::* token,
                               std::optional<Ns> ComparedToken::* time) {
    const auto tokens = tokens_of(reader);
    const auto times = times_of(reader);
    for (const ComparedToken& row : aligned.rows.rows) {
      SCOPED_TRACE(row.index);
      const bool there = row.index < tokens.size();
      ASSERT_EQ((row.*token).has_value(), there);
      const auto timed = times.find(row.index);
      ASSERT_EQ((row.*time).has_value(), there && timed != times.end());
      if (row.*token) {
        EXPECT_EQ(*(row.*token), tokens[row.index]);
      }
      if (row.*time) {
        EXPECT_EQ(*(row.*time), timed->second);
      }
    }
  };
  expect_side(left, &ComparedToken::left, &ComparedToken::left_ns);
  expect_side(right, &ComparedToken::right, &ComparedToken::right_ns);
}

// A template as text: the op and the name of each node that computes something.
std::string template_text(const GraphTemplate& graph) {
  std::ostringstream words;
  for (const Op& op : graph.ops) {
    for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
      const Node& node = graph.nodes[n];
      const bool idle = !node.computed || node.op == "NONE" || node.op == "RESHAPE" ||
                        node.op == "VIEW" || node.op == "PERMUTE" || node.op == "TRANSPOSE";
      if (op.nodes == 1 || !idle) words << node.op << ' ';
    }
    words << graph.tensors[graph.nodes[op.last().v].output.v].name << '\n';
  }
  return words.str();
}

// Checks the match of each pair against the two graphs, and that a template without a partner
// matches none of the other side.
void expect_matches(const std::vector<ComparedTemplate>& pairs, const SessionReader& left,
                    const SessionReader& right) {
  const auto alike = [&](TemplateId a, TemplateId b) {
    const auto x = left.graph(a).value(), y = right.graph(b).value();
    return x->fingerprint == y->fingerprint         ? TemplateMatch::Identical
           : template_text(*x) == template_text(*y) ? TemplateMatch::SameOps
                                                    : TemplateMatch::OnlyLeft;
  };
  for (const ComparedTemplate& pair : pairs) {
    SCOPED_TRACE(std::to_string(pair.left.v) + " and " + std::to_string(pair.right.v));
    if (pair.left.v != 0) {
      EXPECT_EQ(pair.left_ops, left.graph(pair.left).value()->ops.size());
    }
    if (pair.right.v != 0) {
      EXPECT_EQ(pair.right_ops, right.graph(pair.right).value()->ops.size());
    }
    if (pair.left.v != 0 && pair.right.v != 0) {
      EXPECT_EQ(pair.match, alike(pair.left, pair.right));
    } else {
      EXPECT_EQ(pair.match, pair.right.v == 0 ? TemplateMatch::OnlyLeft : TemplateMatch::OnlyRight);
    }
    for (const ComparedTemplate& other : pairs) {
      if (pair.left.v == 0 || other.right.v == 0) continue;
      const TemplateMatch match = alike(pair.left, other.right);
      // An identical template is paired with an identical one.
      if (match == TemplateMatch::Identical) {
        EXPECT_TRUE(pair.match == match || other.match == match);
      }
      if (pair.right.v == 0 && other.left.v == 0) {
        EXPECT_EQ(match, TemplateMatch::OnlyLeft) << "with " << other.right.v;
      }
    }
  }
}

}  // namespace

void expect_comparison(const ComparedSession& left, const ComparedSession& right) {
  const auto comparison = compare(left, right, {.tokens = {.from = 0, .limit = 1'000'000}});
  ASSERT_TRUE(comparison.has_value()) << comparison.error().message;
  EXPECT_TRUE(comparison->rows.empty());
  for (const Axis by : kComparedAxes) {
    for (const Phase phase : {Phase::Prompt, Phase::Generate}) {
      const auto of = compare(left, right, {.by = by, .phase = phase});
      ASSERT_TRUE(of.has_value()) << of.error().message;
      EXPECT_EQ(of->phase, phase);
      expect_side(of->rows, by, phase, &ComparedRow::left, left);
      expect_side(of->rows, by, phase, &ComparedRow::right, right);
      const auto time = [](const std::optional<TraceSums>& side) {
        return side ? side->time_ns : 0;
      };
      EXPECT_TRUE(std::ranges::is_sorted(of->rows, std::greater(), [&](const ComparedRow& row) {
        return std::abs(time(row.right) - time(row.left));
      }));
    }
  }
  const auto expect_total = [&](const std::optional<TraceSums>& total,
                                const SessionReader& reader) {
    TraceSums sum;
    for (const auto& [name, sums] : naive_means(reader, Axis::OpKind, comparison->phase))
      sum += sums;
    expect_equal_sums(without_time(total.value_or(TraceSums{})), sum);
  };
  expect_total(comparison->total.left, left.reader);
  expect_total(comparison->total.right, right.reader);

  const auto a = tokens_of(left.reader), b = tokens_of(right.reader);
  std::uint32_t common = 0;
  while (common < std::min(a.size(), b.size()) && a[common].id == b[common].id) ++common;
  EXPECT_EQ(comparison->tokens.left, a.size());
  EXPECT_EQ(comparison->tokens.right, b.size());
  EXPECT_EQ(comparison->tokens.common, common);
  EXPECT_EQ(comparison->tokens.rows.rows.size(), std::max(a.size(), b.size()));
  expect_tokens(comparison->tokens, left.reader, right.reader);
  expect_matches(comparison->templates, left.reader, right.reader);

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

}  // namespace tt::test
