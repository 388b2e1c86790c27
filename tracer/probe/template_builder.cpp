#include "tracer/probe/template_builder.h"

#include <ggml-backend.h>
#include <ggml.h>
#include <xxhash.h>

#include <algorithm>
#include <format>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tracer/format/names/names.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {

namespace {

std::string op_text(const ggml_tensor& node) {
  switch (node.op) {
    case GGML_OP_UNARY:
      return std::format("UNARY({})", ggml_op_desc(&node));
    case GGML_OP_GLU:
      return std::format("GLU({})", ggml_op_desc(&node));
    default:
      return ggml_op_name(node.op);
  }
}

ggml_backend_buffer_t buffer_of(const ggml_tensor& tensor) {
  return tensor.buffer != nullptr || tensor.view_src == nullptr ? tensor.buffer
                                                                : tensor.view_src->buffer;
}

std::string device_of(const ggml_tensor& tensor) {
  const ggml_backend_buffer_t buffer = buffer_of(tensor);
  if (buffer == nullptr || ggml_backend_buffer_is_host(buffer)) return "CPU";
  const ggml_backend_dev_t device =
      ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer));
  return device == nullptr ? ggml_backend_buffer_name(buffer) : ggml_backend_dev_name(device);
}

class Builder {
 public:
  Builder(std::span<const ggml_tensor* const> nodes, const ModelLayout& layout)
      : nodes_(nodes), layout_(layout) {
    for (const ggml_tensor* node : nodes) outputs_.insert(node);
  }

  BuiltGraph build(std::span<const OpSpan> ops) {
    for (const ggml_tensor* node : nodes_) add_node(*node);
    for (const OpSpan& span : ops) add_op(span);
    label_inputs(built_.graph);
    assign_op_layers(built_.graph);
    // From here on tensors, nodes and ops are final; slots refer to them.
    add_slots();
    built_.graph.fingerprint = fingerprint();
    return std::move(built_);
  }

 private:
  TensorId tensor_id(const ggml_tensor* tensor) {
    if (tensor == nullptr) return kNoTensor;
    if (const auto known = ids_.find(tensor); known != ids_.end()) return known->second;
    const TensorId root = tensor_id(tensor->view_src);
    const TensorId id{static_cast<std::uint32_t>(built_.graph.tensors.size())};
    built_.graph.tensors.push_back(describe(*tensor, root));
    built_.tensors.push_back(tensor);
    ids_.emplace(tensor, id);
    return id;
  }

  Tensor describe(const ggml_tensor& from, TensorId root) {
    Tensor tensor;
    tensor.name = from.name;
    tensor.type = ggml_type_name(from.type);
    tensor.block_elements = static_cast<std::uint32_t>(ggml_blck_size(from.type));
    tensor.block_bytes = static_cast<std::uint32_t>(ggml_type_size(from.type));
    std::copy_n(from.ne, 4, tensor.ne.begin());
    std::copy_n(from.nb, 4, tensor.nb.begin());
    tensor.view_of = root;
    tensor.view_offset = from.view_offs;
    const ggml_backend_buffer_t buffer = buffer_of(from);
    if (buffer != nullptr) tensor.buffer = ggml_backend_buffer_name(buffer);

    if (root == kNoTensor) {
      classify(from, buffer, tensor);
      add_buffer(buffer, tensor.kind);
      if (tensor.name.starts_with("cache_k_l"))
        ++built_.buffers.layers_by_cells[tensor.ne[1] * tensor.ne[2]];
    } else {
      const Tensor& owner = built_.graph.tensors[root.v];
      tensor.kind = owner.kind;
      tensor.source = owner.source;
      if (!owner.file.empty()) {
        tensor.file = {.file = owner.file.file,
                       .offset = owner.file.offset + from.view_offs,
                       .length = std::min<std::uint64_t>(ggml_nbytes(&from),
                                                         owner.file.length - from.view_offs)};
      }
    }
    // A view without a layer in its name belongs to the layer of its root.
    tensor.layer = layer_of(tensor.name);
    if (tensor.layer == kNoLayer && root != kNoTensor) {
      tensor.layer = built_.graph.tensors[root.v].layer;
    }
    tensor.component = component_of(tensor.name, tensor.kind);
    tensor.role = role_of(tensor.name, tensor.kind);
    return tensor;
  }

  void classify(const ggml_tensor& from, ggml_backend_buffer_t buffer, Tensor& tensor) {
    if (outputs_.contains(&from)) {
      tensor.kind = TensorKind::Intermediate;
    } else if (std::string_view(from.name).starts_with("cache_")) {
      tensor.kind = TensorKind::Kv;
    } else if (const GgufTensor* weight = layout_.index.find(from.name);
               weight != nullptr || (buffer != nullptr && ggml_backend_buffer_get_usage(buffer) ==
                                                              GGML_BACKEND_BUFFER_USAGE_WEIGHTS)) {
      tensor.kind = TensorKind::Weight;
      locate(from, weight, tensor);
    } else if ((from.flags & GGML_TENSOR_FLAG_INPUT) == 0 && buffer != nullptr &&
               ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_ANY) {
      tensor.kind = TensorKind::Kv;  // a renamed cache: "conv_states_all-1"
    } else if ((from.flags & GGML_TENSOR_FLAG_INPUT) != 0 ||
               !std::string_view(from.name).contains('#')) {
      tensor.kind = TensorKind::Input;
    }  // else "device#name#n": the scheduler's copy of an intermediate
    tensor.source = source_of(from, buffer, tensor);
  }

  void add_buffer(ggml_backend_buffer_t buffer, TensorKind kind) {
    if (buffer == nullptr || kind == TensorKind::Weight || !buffers_.insert(buffer).second) return;
    const std::uint64_t bytes = ggml_backend_buffer_get_size(buffer);
    if (ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_COMPUTE) {
      built_.buffers.compute += bytes;
    } else if (kind == TensorKind::Kv) {
      built_.buffers.kv += bytes;
    }
  }

  void locate(const ggml_tensor& from, const GgufTensor* weight, Tensor& tensor) {
    const auto by_address = layout_.mapped.locate(from.data, ggml_nbytes(&from));
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

  Source source_of(const ggml_tensor& from, ggml_backend_buffer_t buffer, const Tensor& tensor) {
    if (buffer != nullptr && !ggml_backend_buffer_is_host(buffer)) {
      // Buffers of repacked weights (CPU_REPACK, AMX) are in memory, but are not "host" buffers,
      // because the layout is not ggml's.
      ggml_backend_dev_t device =
          ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer));
      const bool in_memory =
          device == nullptr || ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
      return in_memory ? Source::Repacked : Source::Device;
    }
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
    if (layout_.mapped.locate(from.data, ggml_nbytes(&from))) return Source::Disk;
    return tensor.buffer.contains("REPACK") ? Source::Repacked : Source::Buffer;
  }

  void add_node(const ggml_tensor& from) {
    Node node;
    node.op = op_text(from);
    node.computed = does_work(from);
    std::copy_n(from.op_params, node.params.size(), node.params.begin());
    std::size_t sources = GGML_MAX_SRC;
    while (sources > 0 && from.src[sources - 1] == nullptr) --sources;
    for (std::size_t i = 0; i < sources; ++i) node.src.push_back(tensor_id(from.src[i]));
    node.output = tensor_id(&from);
    // llama.cpp does not name the output of flash attention ("node_24").
    if (Tensor& output = built_.graph.tensors[node.output.v];
        from.op == GGML_OP_FLASH_ATTN_EXT && output.component == Component::Other) {
      output.component = Component::Attention;
    }
    built_.graph.nodes.push_back(std::move(node));
  }

  void add_op(const OpSpan& span) {
    Op op;
    op.first = NodeId{span.first};
    op.nodes = span.nodes;
    op.device = device_of(*nodes_[span.first + span.nodes - 1]);
    built_.graph.ops.push_back(std::move(op));
  }

  void add_slots() {
    find_routing();
    for (std::uint32_t i = 0; i < built_.graph.ops.size(); ++i) {
      const Op& op = built_.graph.ops[i];
      for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
        const SlotSources sources = slot_sources(*nodes_[n]);
        for (std::size_t s = 0; s < sources.count; ++s) {
          add_slot(tensor_id(sources.tensors[s]), *nodes_[n], OpId{i}, op.layer);
        }
      }
    }
  }

  void add_slot(TensorId tensor, const ggml_tensor& node, OpId op, LayerId layer) {
    if (!slotted_.insert(tensor.v).second) return;
    SlotKind kind = SlotKind::Rows;
    if (experts_.contains(tensor.v)) {
      kind = SlotKind::Experts;
    } else if (scores_.contains(tensor.v)) {
      kind = SlotKind::ExpertScores;
    } else if (node.op == GGML_OP_MUL) {
      slotted_.erase(tensor.v);
      return;  // shaped like routing weights, but not derived from a list of experts
    } else if (node.op == GGML_OP_FLASH_ATTN_EXT) {
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
    for (const ggml_tensor* node : nodes_) {
      if (node->op == GGML_OP_MUL_MAT_ID || node->op == GGML_OP_ADD_ID) {
        experts_.insert(tensor_id(node->src[2]).v);
      }
    }
    std::unordered_set<std::uint32_t> routed;
    for (const ggml_tensor* node : nodes_) {
      const auto from_routed = [&](int i) {
        return node->src[i] != nullptr && routed.contains(tensor_id(node->src[i]).v);
      };
      if (node->op == GGML_OP_GET_ROWS) {
        if (experts_.contains(tensor_id(node->src[1]).v)) routed.insert(tensor_id(node).v);
      } else if (node->op == GGML_OP_MUL && from_routed(1) && !from_routed(0)) {
        scores_.insert(tensor_id(node->src[1]).v);
      } else if (from_routed(0) && node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) {
        routed.insert(tensor_id(node).v);
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

  std::span<const ggml_tensor* const> nodes_;
  const ModelLayout& layout_;
  BuiltGraph built_;
  std::unordered_map<const ggml_tensor*, TensorId> ids_;
  std::unordered_set<const ggml_tensor*> outputs_;
  std::unordered_set<std::uint32_t> slotted_, experts_, scores_;
  std::unordered_set<ggml_backend_buffer_t> buffers_;  // counted
};

}  // namespace

BuiltGraph build_template(std::span<const ggml_tensor* const> nodes, std::span<const OpSpan> ops,
                          const ModelLayout& layout) {
  return Builder(nodes, layout).build(ops);
}

bool does_work(const ggml_tensor& node) {
  switch (node.op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
      return false;
    default:
      return (node.flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
  }
}

SlotSources slot_sources(const ggml_tensor& node) {
  SlotSources sources;
  const auto add = [&](const ggml_tensor* tensor) {
    if (tensor != nullptr) sources.tensors[sources.count++] = tensor;
  };
  switch (node.op) {
    case GGML_OP_GET_ROWS:
    case GGML_OP_SET_ROWS:
    case GGML_OP_ROPE:
      add(node.src[1]);
      break;
    case GGML_OP_MUL_MAT_ID:
    case GGML_OP_ADD_ID:
      add(node.src[2]);
      break;
    case GGML_OP_FLASH_ATTN_EXT:
      add(node.src[3]);
      break;
    case GGML_OP_SSM_SCAN:
      add(node.src[6]);
      break;
    case GGML_OP_MUL: {
      // Routing weights are applied as [1, experts used, tokens] to [n, experts used, tokens].
      const ggml_tensor* factor = node.src[1];
      if (factor->type == GGML_TYPE_F32 && factor->ne[0] == 1 && factor->ne[3] == 1 &&
          factor->ne[1] == node.ne[1] && factor->ne[2] == node.ne[2] && factor->ne[1] <= 256) {
        add(factor);
      }
      break;
    }
    default:
      break;
  }
  return sources;
}

}  // namespace tt
