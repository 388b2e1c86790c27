#include "api/exchange/rows/slices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

constexpr std::size_t kGraphsKept = 64;

// The memory of a view is that of its root, so that a read of the cache follows the op that wrote
// into the cache.
std::vector<Handover> handovers_of(const DerivedGraph& derived) {
  const GraphTemplate& graph = *derived.graph;
  std::vector<std::uint32_t> written_by(graph.tensors.size(), kNone);  // per root; kNone: not yet
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  std::vector<Handover> found;
  for (const Access& access : derived.accesses) {  // by op, reads before the write
    std::uint32_t& writer = written_by[graph.root(access.tensor).v];
    if (access.write) {
      writer = access.op.v;
    } else if (writer != kNone && writer != access.op.v &&
               seen.emplace(writer, access.op.v).second) {
      found.push_back({.writer = writer, .reader = access.op.v});
    }
  }
  return found;
}

}  // namespace

const Slices::Graph& Slices::graph_of(const StepRows& rows) {
  const TemplateId id = rows.scope.step->graph;
  if (const auto known = graphs_.find(id); known != graphs_.end()) return known->second;
  if (graphs_.size() == kGraphsKept) graphs_.clear();
  Graph& made = graphs_[id];
  const RowTemplate& graph = *rows.scope.graph;
  const GraphTemplate& nodes = *graph.derived->graph;
  for (std::size_t i = 0; i < nodes.ops.size(); ++i) {
    const Tensor& output = nodes.tensor(nodes.node(nodes.ops[i].last()).output);
    made.labels.push_back(to_valid_utf8(
        output.name.empty() ? graph.op_names[i] : output.name + " " + graph.op_names[i]));
  }
  made.handovers = handovers_of(*graph.derived);
  return made;
}

const StepSlice& Slices::of(const StepRows& rows) {
  const Step& step = *rows.scope.step;
  slice_.step = &step;
  slice_.read = slice_.written = {};
  slice_.tokens += step.n_tokens;
  slice_.ops.clear();
  slice_.experts.clear();
  slice_.handovers = {};
  slice_.time.begin = at_ = std::max(at_, step.begin.v);
  if (rows.scope.graph != nullptr) {
    const RowTemplate& graph = *rows.scope.graph;
    const GraphTemplate& nodes = *graph.derived->graph;
    const Graph& known = graph_of(rows);
    slice_.handovers = known.handovers;
    at_ = std::max(at_, step.first_op.v);
    const std::size_t ops = std::min(step.op_ends.size(), nodes.ops.size());
    for (std::uint32_t i = 0; i < ops; ++i) {
      const Op& op = nodes.ops[i];
      OpSlice slice;
      slice.time.begin = at_;
      slice.time.end = at_ = std::max(at_, step.op_ends[i].v);
      slice.name = graph.op_names[i];
      const Tensor& output = nodes.tensor(nodes.node(op.last()).output);
      slice.tensor = output.name;
      slice.component = output.component;
      slice.label = known.labels[i];
      slice.device = op.device;
      slice.layer = op.layer;
      slice_.ops.push_back(slice);
    }
    std::set<std::pair<LayerId, std::int32_t>> experts;
    for (const ExportRow& row : rows.rows) {
      const StepAccess& access = row.access;
      (access.write ? slice_.written : slice_.read) += access.touched;
      if (access.op.v >= slice_.ops.size()) continue;
      OpSlice& slice = slice_.ops[access.op.v];
      (access.write ? slice.written : slice.read) += access.touched;
      const auto source = static_cast<std::size_t>(nodes.tensor(access.tensor).source);
      slice.source_bytes[source] += access.touched.v;
      if (access.expert >= 0 && experts.emplace(slice.layer, access.expert).second)
        slice_.experts.push_back({.op = access.op.v,
                                  .layer = slice.layer,
                                  .expert = access.expert,
                                  .rank = access.rank,
                                  .score = access.score});
    }
  }
  slice_.time.end = at_ = std::max(at_, step.end.v);
  return slice_;
}

double per_second(Bytes bytes, const Slice& time) {
  const auto ns = static_cast<double>(time.end - time.begin);
  return ns > 0 ? static_cast<double>(bytes.v) * 1e9 / ns : 0;
}

}  // namespace tt::exchange
