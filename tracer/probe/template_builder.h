// Builds a GraphTemplate from a graph as ggml describes it. Runs when a graph is new.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/mapped_files.h"
#include "tracer/probe/raw_graph.h"

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
  GraphTemplate graph;  // a TensorId is the index of the tensor in RawGraph::tensors
  OffsetCoverage coverage;
  BufferSizes buffers;
};

// `ops` covers exactly the nodes that do work.
BuiltGraph build_template(const RawGraph& graph, std::span<const OpSpan> ops,
                          const ModelLayout& layout);

}  // namespace tt
