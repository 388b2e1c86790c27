// Memory accesses of ops. They are derived from template x step and never stored.
//
// accesses_of() returns, per op of a template, what the op reads and writes.
// for_each_access() turns that into one row per access of one step. Touched bytes are a
// footprint: each byte counts once per op; scratch memory of the kernel is excluded. The
// rule of each op is in docs/byte-rules.md and is tested against the real kernels. Pure
// functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt {

// Which part of a tensor (possibly a view) the op touches. All: every element of the view.
// Rows: the rows listed in a slot. Experts: the slices along ne[2] listed in a slot, one
// access each. Cells: the positions along ne[1] of a K or V view that at least one query
// attends to.
enum class Extent : std::uint8_t { All, Rows, Experts, Cells };

struct Access {
  OpId op;
  TensorId tensor;  // the op's source or output: may be a view of a cache or a weight
  bool write = false;
  Extent extent = Extent::All;
  SlotId slot = kNoSlot;     // which rows, experts or cells; kNoSlot with All
  Bytes unit;                // All: the bytes touched; else bytes per row, expert or cell
  std::uint64_t stride = 0;  // bytes between rows, experts or cells; 0 with All
  FileRange range;           // in the GGUF; with Rows and Experts: of the whole tensor
  friend bool operator==(const Access&, const Access&) = default;
};

// Ordered by op, reads in source order before the write. O(nodes).
std::vector<Access> accesses_of(const GraphTemplate& graph);

// One access of one step. An Experts access gives one row per distinct expert, a Rows
// access of a weight matrix one per distinct row, each with its range in the GGUF. All
// other accesses give one row; with Rows and Cells, touched = distinct parts x unit.
struct StepAccess {
  std::uint32_t access = 0;  // index into accesses_of()
  OpId op;
  TensorId tensor;
  bool write = false;
  Bytes touched;
  FileRange range;           // Experts: range of that expert's slice
  std::int32_t expert = -1;  // -1: not an expert
  std::int32_t rank = -1;    // best rank among the step's tokens; 0 is the first choice
  float score = 0;           // routing weight at that rank; NaN: unknown
};

// Calls `row` for each access. Skips ops that did not run (cancelled step), and accesses
// that depend on a slot without values.
void for_each_access(const GraphTemplate& graph, std::span<const Access> accesses, const Step& step,
                     const std::function<void(const StepAccess&)>& row);

// Address of the accessed data: of the tensor as the op sees it, or of the slice of `expert` (-1:
// no expert). `addresses`: per tensor (Allocation). 0: not recorded.
std::uint64_t address_of(std::span<const std::uint64_t> addresses, const Access& access,
                         std::int32_t expert);

// Number and bytes of the rows of for_each_access(), without a call per row.
struct AccessTotals {
  std::uint64_t accesses = 0;
  Bytes read, written;
};
AccessTotals totals_of(const GraphTemplate& graph, std::span<const Access> accesses,
                       const Step& step);

// How to count the parts that an access touches; used to aggregate over many steps without
// a row per access. Accesses of one template with equal rules touch the same number of parts
// in every step, and the same parts if `apart` is set.
struct PartRule {
  SlotId slot = kNoSlot;
  std::int64_t limit = 0;  // list entries in [0, limit) are parts; duplicates count once
  bool separate = false;   // each part is a separate access: Experts, Rows of a weight matrix
  // Not {1, 1}: rows are counted per batch; use parts_of().
  std::array<std::int64_t, 2> batches{1, 1};
  friend bool operator==(const PartRule&, const PartRule&) = default;
};
// `access` must depend on a slot.
PartRule part_rule(const GraphTemplate& graph, const Access& access);
// Number of distinct parts that `values` of its slot select. Without values, there is no
// access.
std::uint64_t parts_of(const GraphTemplate& graph, const Access& access,
                       std::span<const std::int64_t> values);

// The routing weights for the list of experts in slot `experts`: the slot of the same layer,
// the nearest one where a layer routes twice. Null: unknown.
const SlotValues* scores_of(const GraphTemplate& graph, const Step& step, SlotId experts);

// The bytes of each head in a Q, K, V or O weight. Q, K, V: `count` consecutive ranges of
// `bytes` (rows). O: a range of `bytes` in every row, rows `row_stride` bytes apart.
// count 0: the tensor is not divided by heads.
struct HeadGeometry {
  std::uint32_t count = 0;
  Bytes bytes;
  bool by_columns = false;
  std::uint64_t row_stride = 0;
  friend bool operator==(const HeadGeometry&, const HeadGeometry&) = default;
};
// Number of attention heads: of queries, and of keys and values.
struct HeadCounts {
  std::uint32_t q = 0, kv = 0;
  friend bool operator==(const HeadCounts&, const HeadCounts&) = default;
};
// Per layer, from the shapes of its attention ops: head counts may differ between layers, and
// hybrid models have layers without attention.
using LayerHeads = std::map<LayerId, HeadCounts>;
LayerHeads heads_of_layers(const GraphTemplate& graph);
// `model` is used if `layers` is empty, that is for graphs without recognized attention.
// Otherwise layers that are not in `layers` have no heads.
HeadGeometry head_geometry(const Tensor& weight, const LayerHeads& layers, HeadCounts model);
// The number of query heads of its layer that own equal parts of the bytes of an access: to a
// whole weight that head_geometry() divides, or to a cache of K or V. The bytes of a key-value
// head belong in equal parts to the query heads that share it. 0: not divided by heads.
std::uint32_t heads_sharing(const GraphTemplate& graph, const Access& access,
                            const LayerHeads& layers, HeadCounts model);

// The number of bytes from the first to the last byte of the tensor: ggml_nbytes().
Bytes size_of(const Tensor& tensor);

// Category of a tensor in the whole graph, or relative to a selected layer.
enum class Category : std::uint8_t {
  Layer,
  Infrastructure,
  Embedding,
  Output,
  CrossLayerInput,
  CrossLayerOutput
};
// Per tensor, O(tensors + nodes). Only layer_subgraph returns CrossLayer*.
std::vector<Category> categories_of(const GraphTemplate& graph);

const char* to_text(Category);
const char* to_text(Extent);

}  // namespace tt
