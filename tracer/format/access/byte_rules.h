// What one node reads and writes, according to ggml's definition of its op (rules in
// docs/byte-rules.md). Private to tracer/format; access.cpp turns touches into accesses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"

namespace tt {

// The dimension along which a Rows, Experts or Cells touch selects parts.
enum class PartAxis : std::uint8_t { None = 0, Row = 1, Slice = 2, Sequence = 3 };

// One read or write of one node.
struct Touch {
  TensorId tensor;
  bool write = false;
  Extent extent = Extent::All;
  PartAxis axis = PartAxis::None;  // None with All
  TensorId index = kNoTensor;      // the list that selects; kNoTensor with All
  std::uint64_t unit = 0;          // All: bytes touched; else bytes per selected part
  friend bool operator==(const Touch&, const Touch&) = default;
};

// Reads in source order, then the write. No touch for views, for sources of which the op
// uses only the shape, and for empty tensors.
std::vector<Touch> touches_of(const GraphTemplate& graph, const Node& node);

// Whether `outer` touches every byte that `inner` touches, as far as the shapes of the two
// views show. (An MLA cache is read as K and, in part, as V.)
bool covers(const GraphTemplate& graph, const Touch& outer, const Touch& inner);

// Number of distinct parts of the view that the index list selects. Rows are counted per
// batch, as GET_ROWS and SET_ROWS select them. `values` are the values of `index`, innermost
// dimension first. Values outside the view are ignored.
std::uint64_t distinct_parts(const Tensor& view, PartAxis axis, const Tensor& index,
                             std::span<const std::int64_t> values);

}  // namespace tt
