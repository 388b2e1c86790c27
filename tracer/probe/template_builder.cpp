#include "tracer/probe/template_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "tracer/format/names/adapter.h"
#include "tracer/format/names/names.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/probe/op_rules.h"

namespace tt {

namespace {

// The index list, or the potential routing weights, that a node reads; kNoTensor: none.
TensorId slot_source(const RawGraph& raw, const RawTensor& node) {
  const OpRule rule = op_rule(node.op.c_str());
  if (rule.slot < 0 || static_cast<std::size_t>(rule.slot) >= node.src.size()) return kNoTensor;
  const TensorId source{node.src[static_cast<std::size_t>(rule.slot)]};
  if (source == kNoTensor) return kNoTensor;
  const RawTensor& tensor = raw.tensors[source.v];
  if (rule.routing && !(tensor.type == "f32" && is_routing_shape(tensor.ne.data(), node.ne.data())))
    return kNoTensor;
  return source;
}

class Builder {
 public:
  Builder(const RawGraph& raw, const ModelLayout& layout) : raw_(raw), layout_(layout) {
    is_node_.assign(raw.tensors.size(), false);
    for (const std::uint32_t node : raw.nodes) is_node_[node] = true;
    counted_.assign(raw.buffers.size(), false);
  }

  BuiltGraph build(std::span<const OpSpan> ops) {
    for (std::uint32_t i = 0; i < raw_.tensors.size(); ++i)
      built_.graph.tensors.push_back(describe(i));
    for (const std::uint32_t node : raw_.nodes) add_node(node);
    for (const OpSpan& span : ops) add_op(span);
    label_inputs(built_.graph);
    assign_op_layers(built_.graph);
    // From here on tensors, nodes and ops are final; slots refer to them.
    add_slots();
    built_.graph.fingerprint = fingerprint();
    return std::move(built_);
  }

 private:
  const RawBuffer* buffer_of(const RawTensor& tensor) const {
    return tensor.buffer == kNone ? nullptr : &raw_.buffers[tensor.buffer];
  }

  Tensor describe(std::uint32_t index) {
    const RawTensor& from = raw_.tensors[index];
    Tensor tensor;
    tensor.name = from.name;
    tensor.type = from.type;
    tensor.block_elements = from.block_elements;
    tensor.block_bytes = from.block_bytes;
    tensor.ne = from.ne;
    tensor.nb = from.nb;
    tensor.view_of = TensorId{from.view_of};
    tensor.view_offset = from.view_offset;
    if (const RawBuffer* buffer = buffer_of(from)) tensor.buffer = buffer->name;

    if (tensor.view_of == kNoTensor) {
      classify(index, tensor);
      add_buffer(from.buffer, tensor.kind);
      if (tensor.name.starts_with("cache_k_l"))
        ++built_.buffers.layers_by_cells[tensor.ne[1] * tensor.ne[2]];
    } else {
      const Tensor& owner = built_.graph.tensors[from.view_of];
      tensor.kind = owner.kind;
      tensor.source = owner.source;
      if (!owner.file.empty()) {
        tensor.file = {
            .file = owner.file.file,
            .offset = owner.file.offset + from.view_offset,
            .length = std::min<std::uint64_t>(from.bytes, owner.file.length - from.view_offset)};
      }
    }
    // A view without a layer in its name belongs to the layer of its root.
    tensor.layer = layer_of(tensor.name);
    if (tensor.layer == kNoLayer && tensor.view_of != kNoTensor) {
      tensor.layer = built_.graph.tensors[from.view_of].layer;
    }
    tensor.component = component_of(tensor.name, tensor.kind);
    tensor.role = role_of(tensor.name, tensor.kind);
    return tensor;
  }

  void classify(std::uint32_t index, Tensor& tensor) {
    const RawTensor& from = raw_.tensors[index];
    const RawBuffer* buffer = buffer_of(from);
    if (is_node_[index]) {
      tensor.kind = TensorKind::Intermediate;
    } else if (from.name.starts_with("cache_")) {
      tensor.kind = TensorKind::Kv;
    } else if (const GgufTensor* weight = layout_.index.find(from.name);
               weight != nullptr ||
               (buffer != nullptr && buffer->usage == RawBuffer::Usage::Weights)) {
      tensor.kind = TensorKind::Weight;
      locate(from, weight, tensor);
    } else if (is_adapter_weight(from.name)) {
      tensor.kind = TensorKind::Weight;  // of no model file
    } else if (!from.input && buffer != nullptr && buffer->usage == RawBuffer::Usage::Any) {
      tensor.kind = TensorKind::Kv;  // a renamed cache: "conv_states_all-1"
    } else if (from.input || !from.name.contains('#')) {
      tensor.kind = TensorKind::Input;
    }  // else "device#name#n": the scheduler's copy of an intermediate
    tensor.source = source_of(from, tensor);
  }

  void add_buffer(std::uint32_t index, TensorKind kind) {
    if (index == kNone || kind == TensorKind::Weight || counted_[index]) return;
    counted_[index] = true;
    const RawBuffer& buffer = raw_.buffers[index];
    if (buffer.usage == RawBuffer::Usage::Compute) {
      built_.buffers.compute += buffer.size;
    } else if (kind == TensorKind::Kv) {
      built_.buffers.kv += buffer.size;
    }
  }

  void locate(const RawTensor& from, const GgufTensor* weight, Tensor& tensor) {
    const auto by_address = layout_.mapped.locate(from.address, from.bytes);
    ++built_.coverage.weights;
    if (weight != nullptr) ++built_.coverage.by_name;
    if (by_address) ++built_.coverage.by_address;
    if (weight != nullptr && by_address && weight->file == *by_address) ++built_.coverage.agree;
    if (weight != nullptr) {
      tensor.file = weight->file;
    } else if (by_address) {
      tensor.file = *by_address;
    }
  }

  Source source_of(const RawTensor& from, const Tensor& tensor) {
    if (const RawBuffer* buffer = buffer_of(from); buffer != nullptr && !buffer->host)
      return buffer->on_device ? Source::Device : Source::Repacked;
    switch (tensor.kind) {
      case TensorKind::Kv:
        return Source::Kv;
      case TensorKind::Input:
        return Source::Input;
      case TensorKind::Intermediate:
        return Source::Compute;
      case TensorKind::Weight:
        break;
    }
    if (layout_.mapped.locate(from.address, from.bytes)) return Source::Disk;
    return tensor.buffer.contains("REPACK") ? Source::Repacked : Source::Buffer;
  }

  void add_node(std::uint32_t index) {
    const RawTensor& from = raw_.tensors[index];
    Node node;
    node.op = from.op;
    node.computed = from.computed;
    node.params = from.params;
    for (const std::uint32_t source : from.src) node.src.push_back(TensorId{source});
    node.output = TensorId{index};
    // llama.cpp does not name the output of flash attention ("node_24").
    if (Tensor& output = built_.graph.tensors[index];
        from.op == "FLASH_ATTN_EXT" && output.component == Component::Other) {
      output.component = Component::Attention;
    }
    built_.graph.nodes.push_back(std::move(node));
  }

  void add_op(const OpSpan& span) {
    const RawBuffer* buffer = buffer_of(raw_.tensors[raw_.nodes[span.first + span.nodes - 1]]);
    Op op;
    op.first = NodeId{span.first};
    op.nodes = span.nodes;
    op.device = buffer == nullptr ? "CPU" : buffer->device;
    built_.graph.ops.push_back(std::move(op));
  }

  void add_slots() {
    find_routing();
    for (std::uint32_t i = 0; i < built_.graph.ops.size(); ++i) {
      const Op& op = built_.graph.ops[i];
      for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
        const RawTensor& node = raw_.tensors[raw_.nodes[n]];
        if (const TensorId source = slot_source(raw_, node); source != kNoTensor)
          add_slot(source, node, OpId{i}, op.layer);
      }
    }
  }

  void add_slot(TensorId tensor, const RawTensor& node, OpId op, LayerId layer) {
    if (!slotted_.insert(tensor.v).second) return;
    SlotKind kind = SlotKind::Rows;
    if (experts_.contains(tensor.v)) {
      kind = SlotKind::Experts;
    } else if (scores_.contains(tensor.v)) {
      kind = SlotKind::ExpertScores;
    } else if (node.op == "MUL") {
      slotted_.erase(tensor.v);
      return;  // shaped like routing weights, but not derived from a list of experts
    } else if (node.op == "FLASH_ATTN_EXT") {
      kind = SlotKind::AttendedCells;
    } else {
      switch (built_.graph.tensors[built_.graph.root(tensor).v].input) {
        case InputLabel::TokenIds:
          kind = SlotKind::TokenIds;
          break;
        case InputLabel::RopePositions:
          kind = SlotKind::Positions;
          break;
        case InputLabel::CachePositions:
          kind = SlotKind::CachePositions;
          break;
        case InputLabel::OutputIds:
          kind = SlotKind::OutputIds;
          break;
        default:
          break;
      }
    }
    built_.graph.slots.push_back({.kind = kind, .tensor = tensor, .read_at = op, .layer = layer});
  }

  // Finds the lists of expert ids and the routing weights. Routing weights are gathered with such
  // a list and pass through views, sums and scales up to the MUL that applies them.
  void find_routing() {
    for (const std::uint32_t index : raw_.nodes) {
      const RawTensor& node = raw_.tensors[index];
      if ((node.op == "MUL_MAT_ID" || node.op == "ADD_ID") && node.src.size() > 2)
        experts_.insert(node.src[2]);
    }
    std::unordered_set<std::uint32_t> routed;
    for (const std::uint32_t index : raw_.nodes) {
      const RawTensor& node = raw_.tensors[index];
      const auto source = [&](std::size_t i) { return i < node.src.size() ? node.src[i] : kNone; };
      const auto from_routed = [&](std::size_t i) { return routed.contains(source(i)); };
      if (node.op == "GET_ROWS") {
        if (experts_.contains(source(1))) routed.insert(index);
      } else if (node.op == "MUL" && from_routed(1) && !from_routed(0)) {
        scores_.insert(source(1));
      } else if (from_routed(0) && node.op != "MUL_MAT" && node.op != "MUL_MAT_ID") {
        routed.insert(index);
      }
    }
  }

  std::uint64_t fingerprint() const {
    const std::unique_ptr<XXH3_state_t, FreeWith<XXH3_freeState>> state(XXH3_createState());
    XXH3_64bits_reset(state.get());
    const auto add = [&](const auto& value) {
      XXH3_64bits_update(state.get(), &value, sizeof value);
    };
    const auto add_text = [&](const std::string& text) {
      add(text.size());
      XXH3_64bits_update(state.get(), text.data(), text.size());
    };
    for (const Tensor& tensor : built_.graph.tensors) {
      add_text(tensor.type);
      add(tensor.ne);
      add(tensor.nb);
      add(tensor.view_of.v);
      add(tensor.view_offset);
      add_text(tensor.buffer);
      add(tensor.kind);
      add(tensor.file.file);
      add(tensor.file.offset);
    }
    for (const Node& node : built_.graph.nodes) {
      add_text(node.op);
      add(node.params);
      add(node.computed);
      add(node.output.v);
      for (const TensorId source : node.src) add(source.v);
    }
    for (const Op& op : built_.graph.ops) {
      add(op.first.v);
      add(op.nodes);
      add_text(op.device);
    }
    return XXH3_64bits_digest(state.get());
  }

  const RawGraph& raw_;
  const ModelLayout& layout_;
  BuiltGraph built_;
  std::vector<bool> is_node_;  // per tensor
  std::vector<bool> counted_;  // per buffer
  std::unordered_set<std::uint32_t> slotted_, experts_, scores_;
};

}  // namespace

BuiltGraph build_template(const RawGraph& graph, std::span<const OpSpan> ops,
                          const ModelLayout& layout) {
  return Builder(graph, layout).build(ops);
}

}  // namespace tt
