// A known graph as it lies in memory: what to compare a new step's nodes with,
// and what to copy when. Inference thread only; dies with the model.
//
// Recognition compares each node's ggml_tensor, up to its name, with the image
// kept here: op, type, shape, strides, parameters, flags, sources, buffer and
// address. Sources are nodes compared before, or leaves compared at the end, so
// equal images mean the same graph in the same memory; a pointer alone never does.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <ggml.h>

#include "tracer/probe/known_graph.h"
#include "tracer/probe/slot_copy.h"
#include "tracer/probe/template_builder.h"

namespace tt {

class GraphInstance {
 public:
  // What copy to make at the end of which op.
  struct Capture {
    std::uint32_t op = 0;
    std::uint32_t slot = 0;
    const ggml_tensor* source = nullptr;
    SlotPlan plan{};
  };

  GraphInstance(std::span<const ggml_tensor* const> nodes, BuiltGraph built, bool exact_only,
                std::span<const std::unique_ptr<GraphInstance>> known);

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const ggml_tensor* node(std::uint32_t i) const { return nodes_[i].tensor; }

  bool matches(std::uint32_t i, const ggml_tensor* tensor) const {
    return nodes_[i].tensor == tensor && std::memcmp(nodes_[i].image.data(), tensor, kImage) == 0;
  }
  bool leaves_match() const;
  // Whether the first `count` nodes are those of `other`, images included.
  bool same_prefix(const GraphInstance& other, std::uint32_t count) const;

  std::span<const OpSpan> ops() const { return ops_; }
  // The op that ends with this node, or kNone.
  std::uint32_t op_ending_at(std::uint32_t node) const { return op_ending_[node]; }
  std::span<const Capture> captures() const { return captures_; }  // by op

  const KnownGraphPtr& graph() const { return graph_; }
  const AddressesPtr& addresses() const { return addresses_; }

  // The abort clock cannot be trusted for it: another device, or counts that vary.
  bool exact_only = false;
  std::uint64_t last_used = 0;

 private:
  static constexpr std::size_t kImage = offsetof(ggml_tensor, name);
  struct Image {
    const ggml_tensor* tensor;
    std::array<std::byte, kImage> image;
  };
  static Image image_of(const ggml_tensor* tensor);

  std::vector<Image> nodes_;
  std::vector<Image> leaves_;  // inputs; weights and caches keep still while a model is loaded
  std::vector<OpSpan> ops_;
  std::vector<std::uint32_t> op_ending_;
  std::vector<Capture> captures_;
  KnownGraphPtr graph_;
  AddressesPtr addresses_;
};

}  // namespace tt
