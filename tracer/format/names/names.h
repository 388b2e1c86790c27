// Layer, component and role of a tensor, by its name. Pure functions of text. The rules
// follow llama.cpp's naming (docs/names.md). Names are not unique keys.
#pragma once

#include <string_view>

#include "tracer/format/model/graph_template.h"

namespace tt {

// Layer in blk.N.*, *-N (also "-N (view)", "-N (reshaped)"...), *_lN, enc./dec.blk.N.*.
// The number in leaf_N and node_N is not a layer. kNoLayer: no layer.
LayerId layer_of(std::string_view name);
// The name without its layer and without the marks of views and copies:
// "blk.5.attn_q.weight" -> "attn_q.weight", "Qcur-5 (view)" -> "Qcur".
std::string_view name_without_layer(std::string_view name);

// Component and role of a weight, cache or intermediate, by name.
Component component_of(std::string_view name, TensorKind kind);
Role role_of(std::string_view name, TensorKind kind);

// Labels every Input tensor by its consumers: GET_ROWS of the embedding = token ids,
// ROPE = positions, SET_ROWS of a cache = cache positions, GET_ROWS near the output =
// output ids, SOFT_MAX / FLASH_ATTN_EXT src[3] = mask. Does not need the input's name, which
// may be leaf_N. Sets Tensor::input, and component Input.
void label_inputs(GraphTemplate& graph);

// Sets Op::layer of every op to the first that applies:
// 1. the layer of its output;
// 2. the layer that produces its sources and consumes its result, if it is the same;
// 3. the layer of a weight that it reads;
// 4. the layer of the nearest ops with a layer before and after it, if it is the same;
// 5. between the first and the last op with a layer: the layer that produces its sources
//    or consumes its result.
// Stays kNoLayer for a result that several layers read and none produces, such as a mask that
// is cast once.
void assign_op_layers(GraphTemplate& graph);

}  // namespace tt
