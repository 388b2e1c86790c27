#include "tracer/memory/plan/weight_order.h"

#include <algorithm>

namespace tt {

namespace {

// The op that computes the tensor (or the tensor that it is a view of); kNoOp: an input.
OpId computed_by(const GraphTemplate& graph, TensorId tensor) {
  const TensorId root = graph.root(tensor);
  for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
    const Op& of = graph.ops[op];
    for (std::uint32_t node = of.first.v; node <= of.last().v; ++node)
      if (graph.root(graph.nodes[node].output) == root) return OpId{op};
  }
  return kNoOp;
}

ExpertUse expert_use(const GraphTemplate& graph, const Access& access,
                     std::span<const std::uint64_t> addresses) {
  const Tensor& weight = graph.tensor(access.tensor);
  ExpertUse use;
  use.range = {.file = access.range, .address = address_of(addresses, access, -1)};
  use.op = access.op;
  use.slice = access.unit.v;
  use.stride = access.stride;
  use.experts = static_cast<std::uint32_t>(std::max<std::int64_t>(0, weight.ne[2]));
  use.list = access.slot;
  const TensorId list = graph.slot(access.slot).tensor;
  const Tensor& ids = graph.tensor(list);
  const OpId routed = computed_by(graph, list);
  if (routed == kNoOp || routed >= access.op || ids.type != "i32" || ids.nb[0] != 4 ||
      ids.source == Source::Device)
    return use;
  use.list_address = addresses[list.v];
  use.per_token = static_cast<std::uint32_t>(ids.ne[0]);
  use.tokens = static_cast<std::uint32_t>(ids.ne[1]);
  use.token_stride = ids.nb[1];
  use.routed_by = routed;
  return use;
}

}  // namespace

std::vector<std::uint64_t> map_weights(GraphTemplate& graph) {
  constexpr std::uint64_t kFileBits = 44;
  std::vector<std::uint64_t> addresses(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    Tensor& root = graph.tensors[graph.root(TensorId{i}).v];
    if (root.kind != TensorKind::Weight || root.file.empty() || root.source == Source::Device)
      continue;
    root.source = Source::Disk;
    addresses[i] = ((std::uint64_t{root.file.file} + 1) << kFileBits) + root.file.offset +
                   (graph.root(TensorId{i}) == TensorId{i} ? 0 : graph.tensors[i].view_offset);
  }
  return addresses;
}

WeightOrder weight_order(const GraphTemplate& graph, std::span<const Access> accesses,
                         std::span<const std::uint64_t> addresses) {
  WeightOrder order;
  for (const Access& access : accesses) {
    const Tensor& root = graph.tensor(graph.root(access.tensor));
    if (access.write || root.kind != TensorKind::Weight || root.source != Source::Disk ||
        access.range.empty())
      continue;
    const std::uint64_t address = address_of(addresses, access, -1);
    if (address == 0) continue;
    const WeightRange range{.file = access.range, .address = address};
    // Where a list of rows was not recorded, `unit` is what they can add up to.
    const bool whole = access.extent == Extent::All && 2 * access.unit.v >= access.range.length;
    if (whole) {
      order.weights.push_back({.range = range, .op = access.op});
    } else if (access.extent == Extent::Experts) {
      order.experts.push_back(expert_use(graph, access, addresses));
    } else if (!std::ranges::contains(order.lookup, range)) {
      order.lookup.push_back(range);
    }
  }
  return order;
}

}  // namespace tt
