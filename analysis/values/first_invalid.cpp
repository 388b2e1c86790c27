#include "analysis/values/first_invalid.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/common/walk_steps.h"

namespace tt {

namespace {

// The tensor that owns the bytes.
const Tensor& root_of(const GraphTemplate& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  return tensor.view_of == kNoTensor ? tensor : graph.tensor(tensor.view_of);
}

// Reads only inputs of the graph, such as the mask of attention, which has −∞ on purpose.
bool copies_input(const GraphTemplate& graph, const Op& op) {
  return std::ranges::all_of(op_sources(graph, op), [&](TensorId source) {
    return root_of(graph, source).kind == TensorKind::Input;
  });
}

// The first op of the step with NaN or infinity in its output. nullopt: no output has NaN.
std::optional<InvalidValue> first_invalid_of(const GraphTemplate& graph, const Step& step) {
  if (std::ranges::none_of(step.stats, [](const ValueStats& stats) { return stats.nan > 0; }))
    return std::nullopt;
  std::vector<const ValueStats*> known;
  for (const ValueStats& stats : step.stats)
    if (stats.op.v < graph.ops.size()) known.push_back(&stats);
  std::ranges::stable_sort(known, {}, [](const ValueStats* stats) { return stats->op; });
  InvalidValue found{.step = step.id};
  for (const ValueStats* stats : known) {
    const Op& op = graph.op(stats->op);
    if (stats->nan + stats->inf == 0 || copies_input(graph, op)) {
      found.first = OpId{stats->op.v + 1};
      continue;
    }
    const Tensor& output = graph.tensor(graph.node(op.last()).output);
    found.op = stats->op;
    found.op_name = op_name(graph, op);
    found.tensor = output.name;
    found.layer = op.layer;
    found.nan = stats->nan;
    found.inf = stats->inf;
    found.values = 1;
    for (const std::int64_t n : output.ne) found.values *= static_cast<std::uint64_t>(n);
    for (std::uint32_t i = found.first.v; i <= found.op.v; ++i)
      for (const TensorId source : op_sources(graph, graph.op(OpId{i})))
        if (const Tensor& read = root_of(graph, source); read.kind == TensorKind::Weight)
          found.weights.push_back(read.name);
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::expected<std::optional<InvalidValue>, TraceError> first_invalid_value(
    const SessionReader& reader, const ContinueCheck& keep_going) {
  std::optional<InvalidValue> found;
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (info->level != Level::Verbose) return found;
  DerivedGraphCache graphs(reader);
  std::expected<void, TraceError> done;
  const auto read = reader.for_each_step(StepId{0}, std::numeric_limits<std::uint32_t>::max(),
                                         [&](const Step& step) {
                                           if (!keep_going()) {
                                             done = std::unexpected(cancelled_error());
                                             return false;
                                           }
                                           const auto derived = graphs.of(step.graph);
                                           if (!derived) {
                                             done = std::unexpected(derived.error());
                                             return false;
                                           }
                                           if (*derived == nullptr) return true;
                                           const GraphTemplate& graph = *(*derived)->graph;
                                           found = first_invalid_of(graph, step);
                                           return !found;
                                         });
  if (!done) return std::unexpected(done.error());
  if (!read && !found) return std::unexpected(read.error());
  return found;
}

}  // namespace tt
