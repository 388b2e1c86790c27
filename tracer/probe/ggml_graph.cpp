#include "tracer/probe/ggml_graph.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <format>
#include <unordered_map>

#include "tracer/probe/op_rules.h"

namespace tt {

namespace {

const OpRule& rule_of(const ggml_tensor& node) {
  static const auto kRules = [] {
    std::array<OpRule, GGML_OP_COUNT> rules{};
    for (std::size_t i = 0; i < rules.size(); ++i)
      rules[i] = op_rule(ggml_op_name(static_cast<ggml_op>(i)));
    return rules;
  }();
  return kRules[node.op];
}

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

RawBuffer describe(ggml_backend_buffer_t buffer) {
  ggml_backend_dev_t device = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer));
  RawBuffer raw;
  raw.name = ggml_backend_buffer_name(buffer);
  raw.host = ggml_backend_buffer_is_host(buffer);
  raw.device = raw.host ? "CPU" : device == nullptr ? raw.name : ggml_backend_dev_name(device);
  // Buffers of repacked weights (CPU_REPACK, AMX) are in memory, but are not "host" buffers,
  // because the layout is not ggml's.
  raw.on_device = !raw.host && device != nullptr &&
                  ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU;
  switch (ggml_backend_buffer_get_usage(buffer)) {
    case GGML_BACKEND_BUFFER_USAGE_WEIGHTS:
      raw.usage = RawBuffer::Usage::Weights;
      break;
    case GGML_BACKEND_BUFFER_USAGE_COMPUTE:
      raw.usage = RawBuffer::Usage::Compute;
      break;
    default:
      break;
  }
  raw.size = ggml_backend_buffer_get_size(buffer);
  return raw;
}

class Lister {
 public:
  explicit Lister(std::span<const ggml_tensor* const> nodes) {
    for (const ggml_tensor* node : nodes) {
      std::size_t sources = GGML_MAX_SRC;
      while (sources > 0 && node->src[sources - 1] == nullptr) --sources;
      std::vector<std::uint32_t> src;
      for (std::size_t i = 0; i < sources; ++i) src.push_back(index_of(node->src[i]));
      const std::uint32_t index = index_of(node);
      graph.tensors[index].src = std::move(src);
      graph.nodes.push_back(index);
    }
  }

  RawGraph graph;
  std::vector<const ggml_tensor*> tensors;

 private:
  std::uint32_t index_of(const ggml_tensor* tensor) {
    if (tensor == nullptr) return kNone;
    if (const auto known = indices_.find(tensor); known != indices_.end()) return known->second;
    const std::uint32_t root = index_of(tensor->view_src);
    const auto index = static_cast<std::uint32_t>(tensors.size());
    tensors.push_back(tensor);
    indices_.emplace(tensor, index);

    RawTensor raw;
    raw.name = tensor->name;
    raw.op = op_text(*tensor);
    raw.type = ggml_type_name(tensor->type);
    raw.block_elements = static_cast<std::uint32_t>(ggml_blck_size(tensor->type));
    raw.block_bytes = static_cast<std::uint32_t>(ggml_type_size(tensor->type));
    std::copy_n(tensor->ne, 4, raw.ne.begin());
    std::copy_n(tensor->nb, 4, raw.nb.begin());
    std::copy_n(tensor->op_params, raw.params.size(), raw.params.begin());
    raw.input = (tensor->flags & GGML_TENSOR_FLAG_INPUT) != 0;
    raw.computed = does_work(*tensor);
    raw.view_of = root;
    raw.view_offset = tensor->view_offs;
    raw.buffer = buffer_index(buffer_of(*tensor));
    raw.address = reinterpret_cast<std::uint64_t>(tensor->data);
    raw.bytes = ggml_nbytes(tensor);
    graph.tensors.push_back(std::move(raw));
    return index;
  }

  std::uint32_t buffer_index(ggml_backend_buffer_t buffer) {
    if (buffer == nullptr) return kNone;
    const auto [known, fresh] =
        buffers_.emplace(buffer, static_cast<std::uint32_t>(graph.buffers.size()));
    if (fresh) graph.buffers.push_back(describe(buffer));
    return known->second;
  }

  std::unordered_map<const ggml_tensor*, std::uint32_t> indices_;
  std::unordered_map<ggml_backend_buffer_t, std::uint32_t> buffers_;
};

}  // namespace

ProbedGraph build_template(std::span<const ggml_tensor* const> nodes, std::span<const OpSpan> ops,
                           const ModelLayout& layout) {
  Lister lister(nodes);
  return {build_template(lister.graph, ops, layout), std::move(lister.tensors)};
}

bool does_work(const ggml_tensor& node) {
  return rule_of(node).works && (node.flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

const ggml_tensor* slot_source(const ggml_tensor& node) {
  const OpRule& rule = rule_of(node);
  if (rule.slot < 0) return nullptr;
  const ggml_tensor* source = node.src[rule.slot];
  const bool is_slot =
      source != nullptr &&
      (!rule.routing || (source->type == GGML_TYPE_F32 && is_routing_shape(source->ne, node.ne)));
  return is_slot ? source : nullptr;
}

}  // namespace tt
