// Turns the nodes that the scheduler listed into a GraphTemplate: the only
// place that translates ggml's tensors into ours. Runs between steps, when a
// graph is new; the tensors are those of the graph just evaluated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/mapped_files.h"

struct ggml_tensor;

namespace tt {

// Nodes [first, first + nodes) ran as one op.
struct OpSpan {
  std::uint32_t first = 0;
  std::uint32_t nodes = 1;
};

// Where the weights of the loaded model lie, both ways.
struct ModelLayout {
  const GgufIndex& index;  // by name
  MappedFiles mapped;      // by address
};

// How the two ways from a weight to its file range compare. Repacked and copied
// weights have no mapped address; every mapped one must agree.
struct OffsetCoverage {
  std::uint32_t weights = 0, by_name = 0, by_address = 0, agree = 0;
};

struct BuiltGraph {
  GraphTemplate graph;
  std::vector<const ggml_tensor*> tensors;  // per TensorId
  OffsetCoverage coverage;
};

// `nodes` in execution order; `ops` covers exactly the nodes that do work.
BuiltGraph build_template(std::span<const ggml_tensor* const> nodes, std::span<const OpSpan> ops,
                          const ModelLayout& layout);

// Whether ggml runs anything for this node: it is not a view, and is not left out.
bool does_work(const ggml_tensor& node);

// The index lists and routing weights that this node reads: worth copying when
// the graph is not yet known. At most three.
struct SlotSources {
  std::array<const ggml_tensor*, 3> tensors{};
  std::size_t count = 0;
};
SlotSources slot_sources(const ggml_tensor& node);

}  // namespace tt
