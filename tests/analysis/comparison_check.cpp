#include "tests/analysis/comparison_check.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "analysis/op_facts.h"
#include "analysis/report.h"
#include "analysis/step_summary.h"
#include "api/report/report_text.h"
#include "tracer/format/access.h"

namespace tt::testing {
namespace {

using Sums = std::map<std::string, TraceSums>;

std::string name_on(Axis axis, const GraphTemplate& graph, const Step& step, const Op& op,
                    const Tensor* owner) {
  switch (axis) {
    case Axis::Phase:
      return to_text(step.phase);
    case Axis::Component:
      return to_text(op_part(graph, op).component);
    case Axis::Layer:
      return op.layer == kNoLayer ? "none" : std::to_string(op.layer.v);
    case Axis::Tensor:
      return owner == nullptr ? "" : owner->name;
    default:
      return op_name(graph, op);
  }
}

// Of an axis of tensors only bytes and accesses: times are of ops.
Sums walked(const SessionReader& reader, Axis axis) {
  Sums sums;
  const auto walk = reader.for_each_step(StepId{0}, kNone, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph).value();
    // A step that lost its times ran all of its ops.
    const bool whole = step.op_ends.empty() && !step.aborted;
    const std::size_t ran = whole ? graph->ops.size() : step.op_ends.size();
    for (std::uint32_t i = 0; axis != Axis::Tensor && i < ran; ++i) {
      TraceSums& of = sums[name_on(axis, *graph, step, graph->ops[i], nullptr)];
      ++of.executions;
      if (whole) continue;
      of.time_ns += static_cast<double>((step.op_ends[i] - op_begin(step, OpId{i})).v);
    }
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      TraceSums& of = sums[name_on(axis, *graph, step, graph->op(access.op),
                                   &graph->tensor(graph->root(access.tensor)))];
      const auto bytes = static_cast<double>(access.touched.v);
      (access.write ? of.bytes_written : of.bytes_read) += bytes;
      ++(access.write ? of.writes : of.reads);
    });
    return true;
  });
  EXPECT_TRUE(walk.has_value());
  return sums;
}

void expect_equal(const TraceSums& seen, const TraceSums& expected, Axis axis) {
  EXPECT_DOUBLE_EQ(seen.bytes_read, expected.bytes_read);
  EXPECT_DOUBLE_EQ(seen.bytes_written, expected.bytes_written);
  EXPECT_DOUBLE_EQ(seen.reads, expected.reads);
  EXPECT_DOUBLE_EQ(seen.writes, expected.writes);
  if (axis == Axis::Tensor) return;
  EXPECT_DOUBLE_EQ(seen.executions, expected.executions);
  EXPECT_NEAR(seen.time_ns, expected.time_ns, 1e-9 * expected.time_ns);
}

bool is_empty(const TraceSums& sums) { return sums == TraceSums{}; }

// One side of the rows of an axis; rows of one name are added up.
void expect_side(const ComparedBy& by, std::optional<TraceSums> ComparedRow::* side,
                 const SessionReader& reader) {
  SCOPED_TRACE(to_text(by.by));
  Sums left = walked(reader, by.by), seen;
  for (const ComparedRow& row : by.rows)
    if (row.*side) seen[row.name] += *(row.*side);
  for (const auto& [name, sums] : seen) {
    SCOPED_TRACE(name);
    expect_equal(sums, left[name], by.by);
    left.erase(name);
  }
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
    for (const auto& [name, sums] : walked(reader, Axis::OpKind)) sum += sums;
    return sum;
  };
  expect_equal(comparison->left, total(left.reader), Axis::All);
  expect_equal(comparison->right, total(right.reader), Axis::All);

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

void expect_report(const std::filesystem::path& file, const SessionIndex& index,
                   const SessionReader& reader) {
  const auto figures = report_figures(file, index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  std::uint64_t weights_read = 0;
  std::uint32_t prompt = 0, generated = 0;
  std::set<std::string> devices;
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> distinct;
  Ns prompt_time{}, generate_time{};
  const auto walk = reader.for_each_step(StepId{0}, kNone, [&](const Step& step) {
    if (step.phase == Phase::Prompt)
      prompt += step.n_tokens, prompt_time.v += step.end.v - step.begin.v;
    if (step.phase == Phase::Generate)
      generated += step.n_tokens, generate_time.v += step.end.v - step.begin.v;
    if (step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph).value();
    for (const Op& op : graph->ops) devices.insert(op.device);
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>> of_op;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      const FileRange& range = access.range;
      if (access.write || range.empty()) return;
      if (!of_op.emplace(access.op.v, range.file, range.offset, range.length).second) return;
      weights_read += range.length;
      distinct.emplace(range.file, range.offset, range.length);
    });
    return true;
  });
  ASSERT_TRUE(walk.has_value());
  std::uint64_t distinct_bytes = 0;
  for (const auto& [in, offset, length] : distinct) distinct_bytes += length;
  EXPECT_EQ(figures->weights_read.v, weights_read);
  EXPECT_EQ(figures->weights_distinct.v, distinct_bytes);
  EXPECT_EQ(figures->prompt_tokens, prompt);
  EXPECT_EQ(figures->generated_tokens, generated);
  EXPECT_EQ(figures->prompt_time, prompt_time);
  EXPECT_EQ(figures->generate_time, generate_time);
  EXPECT_EQ(std::set(figures->devices.begin(), figures->devices.end()), devices);
  for (const auto& [axis, breakdown] :
       {std::pair(Axis::OpKind, &figures->by_op_kind), std::pair(Axis::Layer, &figures->by_layer),
        std::pair(Axis::Component, &figures->by_component),
        std::pair(Axis::Tensor, &figures->by_tensor)}) {
    Sums expected = walked(reader, axis), seen;
    for (const BreakdownRow& row : breakdown->rows) seen[row.name] += row.all;
    for (const auto& [name, sums] : seen) expect_equal(sums, expected[name], axis);
  }
  EXPECT_TRUE(figures->validation.passed());

  const Report report = report_of(*figures);
  EXPECT_FALSE(report.findings.empty());
  for (const ReportFormat format :
       {ReportFormat::Html, ReportFormat::Markdown, ReportFormat::JsonText}) {
    const std::string text = text_of(report, format);
    for (const ReportSection& section : report.sections)
      EXPECT_NE(text.find(section.title), std::string::npos) << section.title;
  }
}

}  // namespace tt::testing
