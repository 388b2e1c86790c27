// The arithmetic operations of ops, from the shapes of their tensors. A multiplication, an
// addition, a root or an exponential is one operation; conversions and copies are none. Pure, any
// thread.
#pragma once

#include <functional>
#include <optional>

#include "tracer/format/model/graph_template.h"

namespace tt {

// What an op reads of a source in a step, in bytes: attention reads the cells that its mask allows.
using ReadOfSource = std::function<double(TensorId source)>;

// In a step that reads so much; nullopt: an op whose operations are not known. Attention counts
// each query with each cell that the step reads, so it counts the masked half of a prompt, too.
std::optional<double> operations_of(const GraphTemplate& graph, const Op& op,
                                    const ReadOfSource& bytes_read);

}  // namespace tt
