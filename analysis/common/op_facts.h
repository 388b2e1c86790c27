// What an op is called, what it reads, and which part of the model it belongs to.
#pragma once

#include <string>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"

namespace tt {

// ggml's word; of a fused op all of them: "RMS_NORM+MUL".
std::string op_name(const GraphTemplate& graph, const Op& op);

// In ggml's order, without what lives only inside a fused op.
std::vector<TensorId> op_sources(const GraphTemplate& graph, const Op& op);

// Of the output, or where its name says nothing, of the first weight that the op reads.
struct OpPart {
  Component component = Component::Other;
  Role role = Role::None;
};
OpPart op_part(const GraphTemplate& graph, const Op& op);

// Whether rows of the access in a step may read bytes of the model's files. Lists of
// cache cells are long: who asks about weights leaves the others out.
bool may_read_file(const GraphTemplate& graph, const Access& access);

}  // namespace tt
