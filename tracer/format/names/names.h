// What a tensor's name says: layer, component and role. Pure text functions;
// the rules are llama.cpp's naming (docs/names.md). Names are not keys.
#pragma once

#include <string_view>

#include "tracer/format/model/graph_template.h"

namespace tt {

// blk.N.*, *-N (also "-N (view)", "-N (reshaped)"...), *_lN, enc./dec.blk.N.*; leaf_N and node_N
// end in a number that is not a layer. kNoLayer: none.
LayerId layer_of(std::string_view name);

// Component and role of a weight, cache or intermediate by name.
Component component_of(std::string_view name, TensorKind kind);
Role role_of(std::string_view name, TensorKind kind);

// Labels every Input tensor by what consumes it: GET_ROWS of the embedding =
// token ids, ROPE = positions, SET_ROWS of a cache = cache positions, GET_ROWS
// near the output = output ids, SOFT_MAX / FLASH_ATTN_EXT src[3] = mask. Works
// where inputs are called leaf_N. Sets Tensor::input, and component Input.
void label_inputs(GraphTemplate& graph);

// Sets Op::layer of every op: its output's layer, else the one whose results it
// reads and that reads its own, else that of a weight it reads, else that of the
// nearest op before it with one and after it (equal), else, inside the layers,
// the one that its data comes from or goes to. None for what several layers read
// and none of them made (a mask that is cast once).
void assign_op_layers(GraphTemplate& graph);

}  // namespace tt
