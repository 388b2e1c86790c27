// Every op of every model must have a case that verifies its byte rule. (This file: our
// generated shapes. All architectures of the library: architectures_test.cpp.)
#include "tests/tracer/format/access/op_coverage.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

TEST(OpCoverage, EveryOpOfGeneratedShapesHasCase) {
  for (const modelgen::NamedShape& shape : modelgen::named_shapes()) {
    modelgen::ModelSpec spec;
    spec.shape = shape.name;
    spec.dims.layers = 4;  // enough to include all kinds of layers of a shape
    if (shape.name == "tinyllama-1.1b") spec.dims.embd = 256;
    for (const auto attention : {FlashAttention::On, FlashAttention::Off}) {
      SCOPED_TRACE(std::string(shape.name) + (attention == FlashAttention::On ? ", fused" : ""));
      ContextOptions context = TracedModel::small_context();
      context.flash_attention = attention;
      TracedModel model(generated_model(spec), context);
      const auto run = model.run(greedy_tokens(17, 3));
      ASSERT_NE(run.result.reason, StopReason::Error) << run.result.error;
      const SessionReader reader = run.reader();
      for (const TemplateId id : reader.template_ids().value())
        EXPECT_EQ(ops_without_a_case(**reader.graph(id)), std::set<std::string>{});
    }
  }
}

TEST(OpCoverage, ReportsOpWithoutCase) {
  GraphTemplate graph;
  graph.tensors.resize(3);
  for (const char* op : {"MUL_MAT", "UNARY(NOT_YET)", "VIEW"})
    graph.nodes.push_back({.output = TensorId{0}, .op = op, .src = {}, .params = {}});
  graph.ops = {{.first = NodeId{0}, .device = "CPU"}, {.first = NodeId{1}, .device = "CPU"}};
  EXPECT_EQ(ops_without_a_case(graph), std::set<std::string>{"UNARY(NOT_YET)"});
}

}  // namespace
}  // namespace tt::test
