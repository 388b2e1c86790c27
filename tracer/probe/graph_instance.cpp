#include "tracer/probe/graph_instance.h"

#include <algorithm>

namespace tt {

namespace {

// Returns the existing object if the same template is known at other addresses.
KnownGraphPtr intern(GraphTemplate graph, std::span<const std::unique_ptr<GraphInstance>> known) {
  for (const auto& instance : known) {
    const GraphTemplate& other = instance->graph()->graph;
    if (other.fingerprint == graph.fingerprint && other == graph) return instance->graph();
  }
  auto fresh = std::make_shared<KnownGraph>();
  fresh->accesses = accesses_of(graph);
  fresh->graph = std::move(graph);
  return fresh;
}

AddressesPtr addresses_of(const ProbedGraph& built, const KnownGraphPtr& graph,
                          std::span<const std::unique_ptr<GraphInstance>> known) {
  auto addresses = std::make_shared<std::vector<std::uint64_t>>();
  addresses->reserve(built.tensors.size());
  for (const ggml_tensor* tensor : built.tensors) {
    addresses->push_back(reinterpret_cast<std::uint64_t>(tensor->data));
  }
  for (const auto& instance : known) {
    if (instance->graph() == graph && *instance->addresses() == *addresses) {
      return instance->addresses();
    }
  }
  return addresses;
}

}  // namespace

GraphInstance::GraphInstance(std::span<const ggml_tensor* const> nodes, ProbedGraph built,
                             bool exact_only_graph,
                             std::span<const std::unique_ptr<GraphInstance>> known)
    : exact_only(exact_only_graph) {
  for (const ggml_tensor* node : nodes) nodes_.push_back(image_of(node));
  for (std::size_t i = 0; i < built.tensors.size(); ++i) {
    const Tensor& tensor = built.graph.tensors[i];
    if (tensor.kind == TensorKind::Input && tensor.view_of == kNoTensor) {
      leaves_.push_back(image_of(built.tensors[i]));
    }
  }
  std::vector<std::int32_t> node_of(built.tensors.size(), kLeaf);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = built.graph.nodes[i];
    Sources& of = sources_.emplace_back();
    of.nodes.fill(kAbsent);
    for (std::size_t s = 0; s < node.src.size(); ++s)
      if (node.src[s] != kNoTensor) of.nodes[s] = node_of[node.src[s].v];
    of.has_slot = slot_source(*nodes[i]) != nullptr;
    node_of[node.output.v] = static_cast<std::int32_t>(i);
  }
  op_ending_.assign(nodes.size(), kNone);
  for (const Op& op : built.graph.ops) {
    op_ending_[op.last().v] = static_cast<std::uint32_t>(ops_.size());
    ops_.push_back({.first = op.first.v, .nodes = op.nodes});
    exact_only = exact_only || op.device != "CPU";
  }
  for (std::uint32_t s = 0; s < built.graph.slots.size(); ++s) {
    const Slot& slot = built.graph.slots[s];
    const ggml_tensor* source = built.tensors[slot.tensor.v];
    Capture& capture = captures_.emplace_back();
    capture.op = slot.read_at.v;
    capture.slot = s;
    capture.source = source;
    capture.plan = slot_plan(
        *source, slot.kind == SlotKind::AttendedCells ? SlotCopy::AttendedCells : SlotCopy::Values);
    const Op& op = built.graph.op(slot.read_at);
    for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
      const auto input = std::ranges::find(nodes[n]->src, source);
      if (input == std::end(nodes[n]->src)) continue;
      capture.node = n;
      capture.input = static_cast<std::uint32_t>(input - std::begin(nodes[n]->src));
      break;
    }
  }
  std::ranges::stable_sort(captures_, {}, &Capture::op);
  graph_ = intern(built.graph, known);
  addresses_ = addresses_of(built, graph_, known);
}

GraphInstance::Image GraphInstance::image_of(const ggml_tensor* tensor) {
  Image image{.tensor = tensor, .image = {}};
  std::memcpy(image.image.data(), tensor, kImage);
  return image;
}

bool GraphInstance::same_structure(std::uint32_t i, const ggml_tensor* tensor,
                                   std::span<const ggml_tensor* const> nodes) const {
  const auto known = [&](std::size_t offset) { return nodes_[i].image.data() + offset; };
  if (std::memcmp(known(offsetof(ggml_tensor, op)), &tensor->op, sizeof tensor->op) != 0 ||
      std::memcmp(known(offsetof(ggml_tensor, type)), &tensor->type, sizeof tensor->type) != 0 ||
      std::memcmp(known(offsetof(ggml_tensor, flags)), &tensor->flags, sizeof tensor->flags) != 0)
    return false;
  const Sources& sources = sources_[i];
  for (std::size_t s = 0; s < GGML_MAX_SRC; ++s) {
    const ggml_tensor* source = tensor->src[s];
    const std::int32_t from = sources.nodes[s];
    if (from == kAbsent ? source != nullptr
        : from == kLeaf ? source == nullptr || source->op != GGML_OP_NONE
                        : source != nodes[static_cast<std::size_t>(from)])
      return false;
  }
  return (slot_source(*tensor) != nullptr) == sources.has_slot;
}

bool GraphInstance::leaves_match() const {
  return std::ranges::all_of(leaves_, [](const Image& leaf) {
    return std::memcmp(leaf.image.data(), leaf.tensor, kImage) == 0;
  });
}

bool GraphInstance::same_prefix(const GraphInstance& other, std::uint32_t count) const {
  if (count > node_count() || count > other.node_count()) return false;
  return std::equal(
      nodes_.begin(), nodes_.begin() + count, other.nodes_.begin(),
      [](const Image& a, const Image& b) { return a.tensor == b.tensor && a.image == b.image; });
}

}  // namespace tt
