// A known graph at its addresses in memory: the images to compare a new step's nodes with,
// and the slots to copy at each op. Inference thread only; destroyed with the model.
//
// Recognition compares each node's ggml_tensor, up to its name, with the image stored here:
// op, type, shape, strides, parameters, flags, sources, buffer and address. Sources are
// nodes compared earlier, or leaves compared at the end, so equal images mean the same graph
// in the same memory. Equal pointers alone would not be enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <ggml.h>

#include "tracer/probe/ggml_graph.h"
#include "tracer/probe/known_graph.h"
#include "tracer/probe/slot_copy.h"

namespace tt {

class GraphInstance {
 public:
  // A slot to copy at the end of op `op`. Its tensor is source number `input` of node `node`.
  struct Capture {
    std::uint32_t op = 0;
    std::uint32_t slot = 0;
    const ggml_tensor* source = nullptr;
    SlotPlan plan{};
    std::uint32_t node = 0, input = 0;
  };

  GraphInstance(std::span<const ggml_tensor* const> nodes, ProbedGraph built, bool exact_only,
                std::span<const std::unique_ptr<GraphInstance>> known);

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const ggml_tensor* node(std::uint32_t i) const { return nodes_[i].tensor; }

  bool matches(std::uint32_t i, const ggml_tensor* tensor) const {
    return nodes_[i].tensor == tensor && std::memcmp(nodes_[i].image.data(), tensor, kImage) == 0;
  }
  bool leaves_match() const;
  // Whether the first `count` nodes equal those of `other`, including their images.
  bool same_prefix(const GraphInstance& other, std::uint32_t count) const;

  // Whether `tensor` can be node `i` of a graph with the structure of this one: the same op, type
  // and flags, and sources at the same places; shapes, strides, parameters and addresses may
  // differ. `nodes`: the nodes before it, which passed the same check.
  bool same_structure(std::uint32_t i, const ggml_tensor* tensor,
                      std::span<const ggml_tensor* const> nodes) const;

  std::span<const OpSpan> ops() const { return ops_; }
  // The op that ends with this node, or kNone.
  std::uint32_t op_ending_at(std::uint32_t node) const { return op_ending_[node]; }
  std::span<const Capture> captures() const { return captures_; }  // sorted by op

  const KnownGraphPtr& graph() const { return graph_; }
  const AddressesPtr& addresses() const { return addresses_; }

  // Ticks cannot be assigned to its ops: it uses another device, or op counts vary.
  bool exact_only = false;
  std::uint64_t last_used = 0;

 private:
  static constexpr std::size_t kImage = offsetof(ggml_tensor, name);
  struct Image {
    const ggml_tensor* tensor;
    std::array<std::byte, kImage> image;
  };
  static Image image_of(const ggml_tensor* tensor);
  // Where a node's sources come from: an earlier node, a leaf (kLeaf) or nothing (kAbsent).
  static constexpr std::int32_t kLeaf = -1, kAbsent = -2;
  struct Sources {
    std::array<std::int32_t, GGML_MAX_SRC> nodes{};
    bool has_slot = false;  // the node reads a potential slot
  };

  std::vector<Image> nodes_;
  std::vector<Sources> sources_;  // of each node
  std::vector<Image> leaves_;     // inputs; weights and caches do not move while a model is loaded
  std::vector<OpSpan> ops_;
  std::vector<std::uint32_t> op_ending_;
  std::vector<Capture> captures_;
  KnownGraphPtr graph_;
  AddressesPtr addresses_;
};

}  // namespace tt
