// Builds small templates for tests: leaves, nodes and views, with f32 elements by default.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tracer/format/model/graph_template.h"

namespace tt::test {

struct Type {
  const char* name;
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
};
inline constexpr Type kF32{"f32", 1, 4}, kF16{"f16", 1, 2}, kI32{"i32", 1, 4}, kI64{"i64", 1, 8},
    kQ8{"q8_0", 32, 34}, kQ4K{"q4_K", 256, 144};

using Shape = std::initializer_list<std::int64_t>;

// A contiguous tensor, as ggml_new_tensor makes it.
inline Tensor dense(std::string name, Shape shape, Type type = kF32) {
  Tensor t;
  t.name = std::move(name);
  t.type = type.name;
  t.block_elements = type.block_elements;
  t.block_bytes = type.block_bytes;
  t.ne = {1, 1, 1, 1};
  std::ranges::copy(shape, t.ne.begin());
  t.nb[0] = type.block_bytes;
  t.nb[1] = t.nb[0] * static_cast<std::uint64_t>(t.ne[0] / type.block_elements);
  t.nb[2] = t.nb[1] * static_cast<std::uint64_t>(t.ne[1]);
  t.nb[3] = t.nb[2] * static_cast<std::uint64_t>(t.ne[2]);
  return t;
}

struct GraphMaker {
  GraphTemplate graph;

  TensorId add(Tensor tensor) {
    graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)};
  }
  TensorId leaf(TensorKind kind, const char* name, Shape shape, Type type = kF32) {
    Tensor t = dense(name, shape, type);
    t.kind = kind;
    return add(std::move(t));
  }
  TensorId weight(const char* name, Shape shape, Type type = kF32) {
    return leaf(TensorKind::Weight, name, shape, type);
  }
  TensorId input(const char* name, Shape shape, Type type = kI32) {
    return leaf(TensorKind::Input, name, shape, type);
  }
  // A view of `of` with its strides. Change the strides through `graph`.
  TensorId view(TensorId of, const char* name, Shape shape, std::uint64_t offset) {
    Tensor t = graph.tensor(of);
    t.name = name;
    t.ne = {1, 1, 1, 1};
    std::ranges::copy(shape, t.ne.begin());
    t.view_of = graph.root(of);
    t.view_offset = graph.tensor(of).view_offset + offset;
    return add(std::move(t));
  }
  // A node that writes `out`. It is an op of its own unless it is fused with the previous node.
  TensorId node(const char* op, TensorId out, std::vector<TensorId> src, bool fused = false) {
    graph.nodes.push_back({.output = out, .op = op, .src = std::move(src)});
    if (fused) {
      ++graph.ops.back().nodes;
    } else {
      graph.ops.push_back(
          {.first = NodeId{static_cast<std::uint32_t>(graph.nodes.size() - 1)}, .device = "CPU"});
    }
    return out;
  }
  TensorId node(const char* op, const char* name, Shape shape, std::vector<TensorId> src,
                bool fused = false) {
    return node(op, add(dense(name, shape)), std::move(src), fused);
  }
  // A node that does no work: a view of its first source.
  TensorId idle(const char* op, const char* name, Shape shape, std::vector<TensorId> src) {
    const TensorId out = view(src[0], name, shape, 0);
    graph.nodes.push_back({.output = out, .op = op, .src = std::move(src), .computed = false});
    return out;
  }
  SlotId slot(SlotKind kind, TensorId tensor, LayerId layer = kNoLayer) {
    const std::uint32_t op =
        graph.ops.empty() ? 0 : static_cast<std::uint32_t>(graph.ops.size() - 1);
    graph.slots.push_back({.kind = kind, .tensor = tensor, .read_at = OpId{op}, .layer = layer});
    return SlotId{static_cast<std::uint32_t>(graph.slots.size() - 1)};
  }
};

}  // namespace tt::test
