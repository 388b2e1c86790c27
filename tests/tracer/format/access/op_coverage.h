// The ops that the cases of op_cases.h cover, by their names in templates: "MUL_MAT",
// "UNARY(SILU)", and "RMS_NORM+MUL" for a fused pair.
#pragma once

#include <ggml-backend.h>

#include <set>
#include <string>

#include "tests/tracer/format/access/op_memory.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/probe/ggml_graph.h"

namespace tt::test {

ggml_backend_t cpu_backend();

// The template of a finished scene; it has one op.
ProbedGraph built_from(const OpScene& scene);

const std::set<std::string>& ops_with_a_case();
// The ops of the graph whose byte rule is not verified by any case.
std::set<std::string> ops_without_a_case(const GraphTemplate& graph);

}  // namespace tt::test
