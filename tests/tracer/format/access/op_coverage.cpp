#include "tests/tracer/format/access/op_coverage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "analysis/common/op_info.h"
#include "tests/tracer/format/access/op_cases.h"

namespace tt::test {

ggml_backend_t cpu_backend() {
  static const ggml_backend_ptr backend = [] {
    ggml_backend_load_all();
    return ggml_backend_ptr(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
  }();
  return backend.get();
}

ProbedGraph built_from(const OpScene& scene) {
  const std::vector<const ggml_tensor*> nodes = scene.nodes();
  std::vector<OpSpan> spans;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (!does_work(*nodes[i])) continue;
    // RMS_NORM and MUL are the only ops that the CPU backend fuses.
    if (!spans.empty() && nodes[i]->op == GGML_OP_MUL && nodes[i - 1]->op == GGML_OP_RMS_NORM) {
      spans.back().nodes = 2;
    } else {
      spans.push_back({.first = i, .nodes = 1});
    }
  }
  EXPECT_EQ(spans.size(), 1u) << "a scene has exactly one op";
  const GgufIndex no_file;
  return build_template(nodes, spans, {.index = no_file, .mapped = {}});
}

const std::set<std::string>& ops_with_a_case() {
  static const std::set<std::string> names = [] {
    std::set<std::string> out;
    for (const auto cases : {matrix_cases(), row_cases(), move_cases(), elementwise_cases(),
                             attention_cases(), recurrent_cases()}) {
      for (const OpCase& c : cases) {
        OpScene scene(cpu_backend());
        scene.finish(c.build(scene));
        const GraphTemplate graph = built_from(scene).graph;
        for (const Op& op : graph.ops) out.insert(op_name(graph, op));
      }
    }
    return out;
  }();
  return names;
}

std::set<std::string> ops_without_a_case(const GraphTemplate& graph) {
  std::set<std::string> out;
  for (const Op& op : graph.ops) {
    const std::string name = op_name(graph, op);
    if (!ops_with_a_case().contains(name)) out.insert(name);
  }
  return out;
}

}  // namespace tt::test
