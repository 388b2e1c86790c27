// The name and sources of an op, and the model component that it belongs to.
#pragma once

#include <string>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"

namespace tt {

// ggml's op name; for a fused op, all names joined: "RMS_NORM+MUL".
std::string op_name(const GraphTemplate& graph, const Op& op);

// In ggml's order, without tensors that exist only inside a fused op.
std::vector<TensorId> op_sources(const GraphTemplate& graph, const Op& op);

// Component and role of the first weight that the op reads, because llama.cpp names some
// outputs after their next use ("ffn_inp" of BERT is the output of a norm). Those of the output
// if the op reads no weight, or if the output says more: "Qcur" after the norm of Q. Ops with
// neither have the component of their type, such as FLASH_ATTN_EXT.
struct OpRole {
  Component component = Component::Other;
  Role role = Role::None;
};
OpRole op_role_of(const GraphTemplate& graph, const Op& op);

// Whether the access can read bytes of the model's files. Queries about weights use it to
// skip the other accesses: lists of cache cells are long.
bool may_read_file(const GraphTemplate& graph, const Access& access);

}  // namespace tt
