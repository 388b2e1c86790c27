#include "analysis/tables/op_table.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"
#include "analysis/common/tensor_filter.h"

namespace tt {

namespace {

OpRow row_of(const GraphTemplate& graph, const Step& step, OpId id, const KernelRules& rules) {
  const Op& op = graph.op(id);
  OpRow row{.op = id,
            .name = op_name(graph, op),
            .output = graph.node(op.last()).output,
            .begin = step.op_begin(id),
            .duration = step.op_duration(id),
            .read = {},
            .written = {},
            .sources = op_sources(graph, op)};
  const OpRole part = op_role_of(graph, op);
  row.component = part.component;
  row.role = part.role;
  row.kernel = kernel_of(graph, op, rules);
  return row;
}

bool passes(const GraphTemplate& graph, const OpRow& row, const OpFilter& filter) {
  return (!filter.layer || graph.op(row.op).layer == *filter.layer) &&
         (!filter.component || row.component == *filter.component) &&
         (matches_pattern(row.name, filter.name) ||
          matches_pattern(graph.tensor(row.output).name, filter.name));
}

// For a stable sort of rows in op order, so that equal rows stay in op order.
bool comes_before(const GraphTemplate& graph, const OpRow& a, const OpRow& b, Order<OpSort> order) {
  const auto in_order = [&](const auto& left, const auto& right) {
    return order.descending ? right < left : left < right;
  };
  switch (order.by) {
    case OpSort::ByOp:
      break;
    case OpSort::ByName:
      return in_order(a.name, b.name);
    case OpSort::ByDuration:
      if (a.duration.has_value() != b.duration.has_value()) return a.duration.has_value();
      return in_order(a.duration, b.duration);
    case OpSort::ByBytes:
      return in_order(a.read + a.written, b.read + b.written);
    case OpSort::ByLayer: {
      const LayerId left = graph.op(a.op).layer, right = graph.op(b.op).layer;
      if ((left == kNoLayer) != (right == kNoLayer)) return right == kNoLayer;
      return in_order(left, right);
    }
  }
  return in_order(a.op, b.op);
}

}  // namespace

std::expected<OpTable, TraceError> op_table(const SessionReader& reader, StepId id,
                                            const OpFilter& filter, Order<OpSort> order,
                                            PageRange range) {
  const auto step = reader.step(id);
  if (!step) return std::unexpected(step.error());
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const KernelRules rules = kernel_rules_of(*info);
  DerivedGraphCache graphs(reader);
  const auto derived = graphs.of(step->graph);
  if (!derived) return std::unexpected(derived.error());
  OpTable table{.step = facts_of(*step), .graph = nullptr, .page = {}};
  if (*derived == nullptr) return table;

  const GraphTemplate& graph = *(*derived)->graph;
  table.graph = (*derived)->graph;
  const std::size_t ran = step->ops_run(graph.ops.size());
  std::vector<OpRow> rows;
  rows.reserve(ran);
  for (std::uint32_t i = 0; i < ran; ++i) rows.push_back(row_of(graph, *step, OpId{i}, rules));
  for_each_access(graph, (*derived)->accesses, *step, [&](const StepAccess& access) {
    OpRow& row = rows[access.op.v];
    (access.write ? row.written : row.read) += access.touched;
  });

  for (const ValueStats& stats : step->stats | std::views::reverse)  // the first one counts
    if (stats.op.v < ran) rows[stats.op.v].stats = stats;

  std::erase_if(rows, [&](const OpRow& row) { return !passes(graph, row, filter); });
  std::ranges::stable_sort(
      rows, [&](const OpRow& a, const OpRow& b) { return comes_before(graph, a, b, order); });
  table.page.total = rows.size();
  for (std::uint64_t i = range.from; i < rows.size() && range.contains(i); ++i)
    table.page.rows.push_back(std::move(rows[i]));
  return table;
}

}  // namespace tt
