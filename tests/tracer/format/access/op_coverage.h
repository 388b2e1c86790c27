// Which ops the cases of op_cases.h show, by the names that templates give them: "MUL_MAT",
// "UNARY(SILU)", and "RMS_NORM+MUL" of a fused pair.
#pragma once

#include <ggml-backend.h>

#include <set>
#include <string>

#include "tests/tracer/format/access/op_memory.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/probe/template_builder.h"

namespace tt::test {

ggml_backend_t cpu_backend();

// The template of the one op of a finished scene.
BuiltGraph built_from(const OpScene& scene);

const std::set<std::string>& ops_with_a_case();
// Those of the graph whose rule nothing holds against the kernels.
std::set<std::string> ops_without_a_case(const GraphTemplate& graph);

}  // namespace tt::test
