#include "analysis/values/first_invalid.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"

namespace tt {

namespace {

// The tensor that owns the bytes.
TensorId root_id(const GraphTemplate& graph, TensorId id) {
  const TensorId owner = graph.tensor(id).view_of;
  return owner == kNoTensor ? id : owner;
}
const Tensor& root_of(const GraphTemplate& graph, TensorId id) {
  return graph.tensor(root_id(graph, id));
}
const Tensor& output_of(const GraphTemplate& graph, const Op& op) {
  return graph.tensor(graph.node(op.last()).output);
}

// The op, and those without statistics whose outputs it depends on: backwards from each source to
// the latest op that wrote it, up to ops with statistics.
std::set<std::uint32_t> possible_origins(const GraphTemplate& graph, std::uint32_t op,
                                         const std::set<std::uint32_t>& with_statistics) {
  std::map<TensorId, std::vector<std::uint32_t>> writers;  // by tensor, in the order of the ops
  for (std::uint32_t i = 0; i < op; ++i)
    writers[root_id(graph, graph.node(graph.ops[i].last()).output)].push_back(i);
  std::set<std::uint32_t> origins = {op};
  std::vector<std::uint32_t> pending = {op};
  while (!pending.empty()) {
    const std::uint32_t at = pending.back();
    pending.pop_back();
    for (const TensorId source : op_sources(graph, graph.ops[at])) {
      const auto written = writers.find(root_id(graph, source));
      if (written == writers.end()) continue;
      const auto next = std::ranges::lower_bound(written->second, at);
      if (next == written->second.begin()) continue;
      const std::uint32_t before = *std::prev(next);
      if (!with_statistics.contains(before) && origins.insert(before).second)
        pending.push_back(before);
    }
  }
  return origins;
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
  std::set<std::uint32_t> with_statistics;
  for (const ValueStats* stats : known) with_statistics.insert(stats->op.v);
  for (const ValueStats* stats : known) {
    const Op& op = graph.op(stats->op);
    if (stats->nan + stats->inf == 0 || copies_input(graph, op)) continue;
    const Tensor& output = output_of(graph, op);
    const auto origins = possible_origins(graph, stats->op.v, with_statistics);
    InvalidValue found{.step = step.id,
                       .first = OpId{*origins.begin()},
                       .op = stats->op,
                       .op_name = op_name(graph, op),
                       .tensor = output.name,
                       .layer = op.layer,
                       .nan = stats->nan,
                       .inf = stats->inf,
                       .values = 1};
    for (const std::int64_t n : output.ne) found.values *= static_cast<std::uint64_t>(n);
    for (const std::uint32_t origin : origins)
      for (const TensorId source : op_sources(graph, graph.ops[origin]))
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
  std::expected<void, TraceError> done;
  const auto find = [&](const Step& step) {
    if (!keep_going()) {
      done = std::unexpected(cancelled_error());
    } else if (!step.stats.empty()) {
      const auto graph = reader.graph(step.graph);
      if (graph)
        found = first_invalid_of(**graph, step);
      else
        done = std::unexpected(graph.error());
    }
    return done && !found;
  };
  const auto read =
      reader.for_each_step(StepId{0}, std::numeric_limits<std::uint32_t>::max(), find);
  if (!done) return std::unexpected(done.error());
  if (!read && !found) return std::unexpected(read.error());
  return found;
}

}  // namespace tt
