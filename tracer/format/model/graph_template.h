// One distinct graph that llama.cpp evaluated: a value. Built by
// tracer/probe/template_builder when a graph is first seen and stored once per session.
// Accesses are derived from it. A step is a template plus times.
//
// Op, type and buffer names are ggml's own strings, so that files stay readable when
// ggml adds new ones. On-disk layout: docs/trace-format.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

enum class TensorKind : std::uint8_t { Intermediate, Weight, Kv, Input };

// Where a tensor's bytes are stored. Disk: the mapped GGUF. All others are memory:
// Repacked (weights rewritten at load), Kv, Compute, Input, Device (not host memory),
// Buffer (weights read into plain memory, without mmap).
enum class Source : std::uint8_t { Disk, Repacked, Kv, Compute, Input, Device, Buffer };

enum class Component : std::uint8_t {
  Other,
  Embedding,
  Attention,
  Ffn,
  Moe,
  Ssm,
  Norm,
  Output,
  KvCache,
  Input
};

enum class Role : std::uint8_t {
  None,
  Q,
  K,
  V,
  Qkv,
  O,
  Gate,
  Up,
  Down,
  Router,
  Norm,
  Bias,
  Conv,
  State,
  Scores,
  Residual,
  Logits
};

// Meaning of an input tensor. Derived from its consumers, because older libraries
// name inputs leaf_N.
enum class InputLabel : std::uint8_t {
  None,
  TokenIds,
  RopePositions,
  CachePositions,
  OutputIds,
  Mask,
  Embeddings,
  StateCopy,
  Other
};

struct Tensor {
  std::string name;                   // ggml's name; not unique within a graph
  std::string type;                   // "Q4_K", "F32"...
  std::uint32_t block_elements = 1;   // elements per block of the type
  std::uint32_t block_bytes = 4;      // bytes per block of the type
  std::array<std::int64_t, 4> ne{};   // elements, innermost first
  std::array<std::uint64_t, 4> nb{};  // strides in bytes
  TensorId view_of = kNoTensor;       // root tensor that owns the bytes
  std::uint64_t view_offset = 0;      // bytes into `view_of`
  std::string buffer;                 // ggml's buffer name: "CPU_Mapped", "CPU_REPACK"...
  TensorKind kind = TensorKind::Intermediate;
  Source source = Source::Compute;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  Role role = Role::None;
  InputLabel input = InputLabel::None;
  FileRange file;  // weights: the whole tensor in the GGUF
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// One node of the graph, in execution order. Views and reshapes are nodes too.
struct Node {
  TensorId output;
  std::string op;             // "MUL_MAT", "UNARY(SILU)", "GLU(SWIGLU)", "VIEW"...
  std::vector<TensorId> src;  // in ggml's order; absent sources are kNoTensor
  std::array<std::int32_t, 16> params{};
  bool computed = true;  // has GGML_TENSOR_FLAG_COMPUTE and does work
  friend bool operator==(const Node&, const Node&) = default;
};

// One executed op: a node that does work, or a fused pair of them.
struct Op {
  NodeId first;
  std::uint32_t nodes = 1;   // RMS_NORM + MUL fused: 2, the last node is the output
  std::string device;        // "CPU", "RPC0"...
  LayerId layer = kNoLayer;  // set by assign_op_layers()
  friend bool operator==(const Op&, const Op&) = default;
  NodeId last() const { return NodeId{first.v + nodes - 1}; }
};

// An index list that selects what an op touches, or that describes the step (token ids,
// positions). Copied from memory in every step and stored in Step::slots.
enum class SlotKind : std::uint8_t {
  TokenIds,
  Positions,
  CachePositions,
  OutputIds,
  Experts,
  ExpertScores,
  Rows,
  AttendedCells
};

struct Slot {
  SlotKind kind;
  TensorId tensor;  // source of the values
  OpId read_at;     // copied at the end of this op: complete and not yet overwritten
  LayerId layer = kNoLayer;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct GraphTemplate {
  std::uint64_t fingerprint = 0;  // of op, type, ne, nb, view, params, flags, sources, buffers
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<Op> ops;
  std::vector<Slot> slots;
  friend bool operator==(const GraphTemplate&, const GraphTemplate&) = default;

  const Tensor& tensor(TensorId id) const { return tensors[id.v]; }
  const Node& node(NodeId id) const { return nodes[id.v]; }
  const Op& op(OpId id) const { return ops[id.v]; }
  const Slot& slot(SlotId id) const { return slots[id.v]; }
  // The tensor that owns the bytes: `id` itself, or the tensor that it is a view of.
  TensorId root(TensorId id) const {
    return tensors[id.v].view_of == kNoTensor ? id : tensors[id.v].view_of;
  }
};

// Names of the enum values in SQL columns and JSON: "weight", "disk"...
const char* to_text(TensorKind);
const char* to_text(Source);
const char* to_text(Component);
const char* to_text(Role);
const char* to_text(InputLabel);
const char* to_text(SlotKind);

}  // namespace tt
