// Converts ggml's tensors of this process to plain values. Runs between steps when a graph is new,
// on the tensors of the graph just evaluated.
#pragma once

#include <span>
#include <vector>

#include "tracer/probe/template_builder.h"

struct ggml_tensor;

namespace tt {

struct ProbedGraph : BuiltGraph {
  std::vector<const ggml_tensor*> tensors;  // per TensorId
};

// `nodes` in execution order; `ops` covers exactly the nodes that do work.
ProbedGraph build_template(std::span<const ggml_tensor* const> nodes, std::span<const OpSpan> ops,
                           const ModelLayout& layout);

// Whether ggml computes anything for this node: false for views and skipped nodes.
bool does_work(const ggml_tensor& node);

// The index list, or the potential routing weights, that this node reads, to copy while the graph
// is unknown. Null: none.
const ggml_tensor* slot_source(const ggml_tensor& node);

}  // namespace tt
