// Builds a GraphTemplate from the nodes listed by the scheduler. The only code that converts
// ggml's tensors to ours. Runs between steps when a graph is new, on the tensors of the
// graph just evaluated.
#pragma once

#include <cstdint>
#include <map>
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

// Where the weights of the loaded model are stored, found in two independent ways.
struct ModelLayout {
  const GgufIndex& index;  // by name
  MappedFiles mapped;      // by address
};

// How many weights were located by name and by address, and how many results agree. Repacked
// and copied weights have no mapped address; all others must agree.
struct OffsetCoverage {
  std::uint32_t weights = 0, by_name = 0, by_address = 0, agree = 0;
};

// Memory of the context that the graph uses, in bytes: whole buffers, each counted once.
struct BufferSizes {
  std::uint64_t kv = 0;  // KV cache or recurrent state
  // Number of layers by the number of cells (tokens) of their KV cache. Layers with a sliding
  // window can have fewer than the others.
  std::map<std::int64_t, std::uint32_t> layers_by_cells;
  std::uint64_t compute = 0;  // intermediate results and inputs
};

struct BuiltGraph {
  GraphTemplate graph;
  std::vector<const ggml_tensor*> tensors;  // per TensorId
  OffsetCoverage coverage;
  BufferSizes buffers;
};

// `nodes` in execution order; `ops` covers exactly the nodes that do work.
BuiltGraph build_template(std::span<const ggml_tensor* const> nodes, std::span<const OpSpan> ops,
                          const ModelLayout& layout);

// Whether ggml computes anything for this node: false for views and skipped nodes.
bool does_work(const ggml_tensor& node);

// The index lists and potential routing weights that this node reads, to copy while the graph
// is unknown. At most three.
struct SlotSources {
  std::array<const ggml_tensor*, 3> tensors{};
  std::size_t count = 0;
};
SlotSources slot_sources(const ggml_tensor& node);

}  // namespace tt
