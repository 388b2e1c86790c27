#include "tests/analysis/aggregate/naive_sums.h"

#include <gtest/gtest.h>

#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/tables/step_summary.h"
#include "analysis/tables/tensor_table.h"

namespace tt::test {
namespace {

std::string name_on(Axis axis, const GraphTemplate& graph, const Step& step, const Op& op,
                    const Access* access) {
  switch (axis) {
    case Axis::Phase:
      return to_text(step.phase);
    case Axis::Component:
      return to_text(op_role_of(graph, op).component);
    case Axis::Layer:
      return op.layer == kNoLayer ? "none" : std::to_string(op.layer.v);
    case Axis::Tensor:
      return access == nullptr ? "" : graph.tensor(graph.root(access->tensor)).name;
    default:
      return op_name(graph, op);
  }
}

}  // namespace

const Access* main_access(const GraphTemplate& graph, const std::vector<Access>& accesses,
                          std::uint32_t op) {
  const Access* best = nullptr;
  std::pair<int, std::uint64_t> best_weight;
  for (const Access& a : accesses) {
    if (a.op.v != op) continue;
    const Tensor& t = graph.tensor(a.tensor);
    const int rank = t.kind == TensorKind::Weight && !a.write ? 3
                     : t.kind == TensorKind::Kv               ? 2
                                                              : (a.write ? 0 : 1);
    const std::pair weight(rank, a.slot == kNoSlot ? a.unit.v : size_of(t).v);
    if (best == nullptr || weight > best_weight) best = &a, best_weight = weight;
  }
  return best;
}

NaiveSums naive_sums(const SessionReader& reader, Axis axis, std::optional<Phase> phase) {
  NaiveSums sums;
  const auto walk = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0 || (phase && step.phase != *phase)) return true;
    const auto graph = reader.graph(step.graph).value();
    const auto accesses = accesses_of(*graph);
    // A step without op times that was not cancelled ran all of its ops.
    const bool whole = step.op_ends.empty() && !step.aborted;
    const std::size_t ran = whole ? graph->ops.size() : step.op_ends.size();
    for (std::uint32_t i = 0; i < ran; ++i) {
      const Access* main = main_access(*graph, accesses, i);
      TraceSums& of = sums[name_on(axis, *graph, step, graph->ops[i], main)];
      ++of.executions;
      if (whole) continue;
      of.time_ns += static_cast<double>((step.op_ends[i] - step.op_begin(OpId{i})).v);
    }
    for_each_access(*graph, accesses, step, [&](const StepAccess& row) {
      TraceSums& of = sums[name_on(axis, *graph, step, graph->op(row.op), &accesses[row.access])];
      (row.write ? of.bytes_written : of.bytes_read) += static_cast<double>(row.touched.v);
      ++(row.write ? of.writes : of.reads);
    });
    return true;
  });
  EXPECT_TRUE(walk.has_value());
  return sums;
}

void expect_equal_sums(const TraceSums& seen, const TraceSums& expected) {
  EXPECT_DOUBLE_EQ(seen.bytes_read, expected.bytes_read);
  EXPECT_DOUBLE_EQ(seen.bytes_written, expected.bytes_written);
  EXPECT_DOUBLE_EQ(seen.reads, expected.reads);
  EXPECT_DOUBLE_EQ(seen.writes, expected.writes);
  EXPECT_DOUBLE_EQ(seen.executions, expected.executions);
  EXPECT_NEAR(seen.time_ns, expected.time_ns, 1e-9 * expected.time_ns);
}

}  // namespace tt::test
