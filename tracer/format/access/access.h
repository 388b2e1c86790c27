// The accesses that ops make, derived and never stored: template x step.
//
// accesses_of() states, per op of a template, what the op reads and writes;
// for_each_access() turns that into one row per access of one step. Bytes
// touched are a footprint: each byte once per op, kernel scratch excluded. The
// rule of each op is in docs/byte-rules.md and tested against a brute-force
// model. Pure functions, any thread.
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

// What part of the tensor (as the op sees it, a view perhaps) the op touches.
// All: every element of the view. Rows: those listed in a slot. Experts: the
// slices along ne[2] listed in a slot, one access each. Cells: the positions
// along ne[1] of a K or V view that some query attends to.
enum class Extent : std::uint8_t { All, Rows, Experts, Cells };

struct Access {
  OpId op;
  TensorId tensor;  // as the op names it: may be a view of a cache or a weight
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

// One row per access of one step. An Experts access is one per distinct expert, a
// Rows access of a weight matrix one per distinct row, each with its place in the
// file; other Rows and Cells accesses are one (its bytes: distinct parts x unit).
struct StepAccess {
  std::uint32_t access = 0;  // index into accesses_of()
  OpId op;
  TensorId tensor;
  bool write = false;
  Bytes touched;
  FileRange range;           // Experts: of that expert's slice
  std::int32_t expert = -1;  // -1: not an expert
  std::int32_t rank = -1;    // best rank among the step's tokens; 0 is the first choice
  float score = 0;           // routing weight at that rank (NaN: unknown)
};

// Ops that did not run (a cancelled step) make no access. When the step's slots
// are missing, slot-dependent accesses are left out.
void for_each_access(const GraphTemplate& graph, std::span<const Access> accesses, const Step& step,
                     const std::function<void(const StepAccess&)>& row);

// How many rows for_each_access() would give and their bytes, without the call per row.
struct AccessTotals {
  std::uint64_t accesses = 0;
  Bytes read, written;
};
AccessTotals totals_of(const GraphTemplate& graph, std::span<const Access> accesses,
                       const Step& step);

// How many parts an access touches, for those who count over many steps without a
// row per access. Accesses of a template with equal rules touch equally many (and,
// where `apart`, the same) in every step.
struct PartRule {
  SlotId slot = kNoSlot;
  std::int64_t limit = 0;  // numbers in the list from 0 up to this are parts, each counted once
  bool apart = false;      // each is an access of its own: Experts, Rows of a weight matrix
  // Not 1, 1: rows are counted batch by batch, and only parts_of() knows how.
  std::array<std::int64_t, 2> batches{1, 1};
  friend bool operator==(const PartRule&, const PartRule&) = default;
};
// `access` depends on a slot.
PartRule part_rule(const GraphTemplate& graph, const Access& access);
// The parts that `values` of its slot name. An access without values is none.
std::uint64_t parts_of(const GraphTemplate& graph, const Access& access,
                       std::span<const std::int64_t> values);

// The routing weights that go with the step's list of experts in that slot: those
// of its layer, the nearest where a layer routes twice. Null: unknown.
const SlotValues* scores_of(const GraphTemplate& graph, const Step& step, SlotId experts);

// The bytes a head owns in a Q, K, V or O weight. Q, K, V: `count` stretches of
// `bytes` one after another (rows). O: in every row a stretch of `bytes`, row
// stride `row_stride`. count 0: the tensor is not divided by heads.
struct HeadGeometry {
  std::uint32_t count = 0;
  Bytes bytes;
  bool by_columns = false;
  std::uint64_t row_stride = 0;
  friend bool operator==(const HeadGeometry&, const HeadGeometry&) = default;
};
// How many heads attention has: of the queries, and of keys and values.
struct HeadCounts {
  std::uint32_t q = 0, kv = 0;
  friend bool operator==(const HeadCounts&, const HeadCounts&) = default;
};
// By the shapes that the layers' attention works on in this graph: models may give each
// layer another count, and hybrids have layers without attention.
using LayerHeads = std::map<LayerId, HeadCounts>;
LayerHeads heads_of_layers(const GraphTemplate& graph);
// `model`: of a graph without attention that could tell; elsewhere layers that are not among
// `layers` have none.
HeadGeometry head_geometry(const Tensor& weight, const LayerHeads& layers, HeadCounts model);

// Category of a tensor in the whole graph, and relative to a chosen layer.
enum class Category : std::uint8_t {
  Layer,
  Infrastructure,
  Embedding,
  Output,
  CrossLayerInput,
  CrossLayerOutput
};
// Per tensor, O(tensors + nodes). CrossLayer* are given by layer_subgraph only.
std::vector<Category> categories_of(const GraphTemplate& graph);

const char* to_text(Category);

}  // namespace tt
