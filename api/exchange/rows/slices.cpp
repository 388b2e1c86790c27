#include "api/exchange/rows/slices.h"

#include <algorithm>

namespace tt::exchange {

const StepSlice& Slices::of(const StepRows& rows) {
  const Step& step = *rows.scope.step;
  slice_.step = &step;
  slice_.read = slice_.written = {};
  slice_.tokens += step.n_tokens;
  slice_.ops.clear();
  slice_.time.begin = at_ = std::max(at_, step.begin.v);
  if (rows.scope.graph != nullptr) {
    const RowTemplate& graph = *rows.scope.graph;
    const GraphTemplate& nodes = *graph.derived->graph;
    at_ = std::max(at_, step.first_op.v);
    const std::size_t ops = std::min(step.op_ends.size(), nodes.ops.size());
    for (std::uint32_t i = 0; i < ops; ++i) {
      const Op& op = nodes.ops[i];
      OpSlice slice;
      slice.time.begin = at_;
      slice.time.end = at_ = std::max(at_, step.op_ends[i].v);
      slice.name = graph.op_names[i];
      slice.tensor = nodes.tensor(nodes.node(op.last()).output).name;
      slice.device = op.device;
      slice.layer = op.layer;
      slice_.ops.push_back(slice);
    }
    for (const ExportRow& row : rows.rows) {
      const StepAccess& access = row.access;
      (access.write ? slice_.written : slice_.read) += access.touched;
      if (access.op.v >= slice_.ops.size()) continue;
      OpSlice& slice = slice_.ops[access.op.v];
      (access.write ? slice.written : slice.read) += access.touched;
      const auto source = static_cast<std::size_t>(nodes.tensor(access.tensor).source);
      slice.source_bytes[source] += access.touched.v;
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
