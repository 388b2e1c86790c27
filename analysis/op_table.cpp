#include "analysis/op_table.h"

#include <algorithm>

#include "analysis/derived_graphs.h"
#include "analysis/step_summary.h"

namespace tt {

namespace {

bool does_work(const Node& node) {
  return node.computed && node.op != "NONE" && node.op != "RESHAPE" && node.op != "VIEW" &&
         node.op != "PERMUTE" && node.op != "TRANSPOSE";
}

std::string name_of(const GraphTemplate& graph, const Op& op) {
  std::string name;
  for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
    const Node& node = graph.node(NodeId{n});
    if (op.nodes > 1 && !does_work(node)) continue;
    if (!name.empty()) name += '+';
    name += node.op;
  }
  return name;
}

std::vector<TensorId> sources_of(const GraphTemplate& graph, const Op& op) {
  std::vector<TensorId> sources, inside;
  for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
    const Node& node = graph.node(NodeId{n});
    for (const TensorId source : node.src) {
      if (source != kNoTensor && std::ranges::find(inside, source) == inside.end())
        sources.push_back(source);
    }
    inside.push_back(node.output);
  }
  return sources;
}

OpRow row_of(const GraphTemplate& graph, const Step& step, OpId id) {
  const Op& op = graph.op(id);
  const bool timed = id.v < step.op_ends.size();
  OpRow row{.op = id,
            .name = name_of(graph, op),
            .output = graph.node(op.last()).output,
            .begin = timed ? op_begin(step, id) : step.begin,
            .end = timed ? step.op_ends[id.v] : step.end,
            .read = {},
            .written = {},
            .sources = sources_of(graph, op)};
  const Tensor& output = graph.tensor(row.output);
  row.component = output.component;
  row.role = output.role;
  if (output.component == Component::Other && output.role == Role::None) {
    const auto weight = std::ranges::find_if(row.sources, [&](TensorId source) {
      return graph.tensor(source).kind == TensorKind::Weight;
    });
    if (weight != row.sources.end()) {
      row.component = graph.tensor(*weight).component;
      row.role = graph.tensor(*weight).role;
    }
  }
  return row;
}

}  // namespace

std::expected<OpTable, TraceError> op_table(const SessionReader& reader, StepId id,
                                            PageRange range) {
  const auto step = reader.step(id);
  if (!step) return std::unexpected(step.error());
  DerivedGraphs graphs(reader);
  const auto derived = graphs.of(step->graph);
  if (!derived) return std::unexpected(derived.error());
  OpTable table;
  if (*derived == nullptr) return table;

  const GraphTemplate& graph = *(*derived)->graph;
  table.graph = (*derived)->graph;
  const bool all_ran = step->op_ends.empty() && !step->aborted;
  table.page.total = all_ran ? graph.ops.size() : std::min(step->op_ends.size(), graph.ops.size());
  const std::uint64_t end = std::min(table.page.total, range.from + range.limit);
  for (std::uint64_t i = range.from; i < end; ++i)
    table.page.rows.push_back(row_of(graph, *step, OpId{static_cast<std::uint32_t>(i)}));

  for_each_access(graph, (*derived)->accesses, *step, [&](const StepAccess& access) {
    if (!range.holds(access.op.v)) return;
    OpRow& row = table.page.rows[access.op.v - range.from];
    (access.write ? row.written : row.read) += access.touched;
  });
  return table;
}

}  // namespace tt
