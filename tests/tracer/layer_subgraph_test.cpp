// Layers 0, 5 and 21 of the tinyllama shape as text, from a graph that the real
// engine ran. The model is narrower than TinyLlama 1.1B, with its 22 layers:
// widths change no node, only the shapes that stand in the text.
//
// UPDATE_GOLDEN=1 rewrites the files; whoever reads the diff checks it by hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <format>
#include <fstream>
#include <map>

#include "analysis/layer_subgraph.h"
#include "tests/analysis/layer_check.h"
#include "tests/tracer/traced_model.h"

    namespace tt::testing {
  namespace {

  namespace fs = std::filesystem;

  const fs::path kLayers = fs::path(TT_TEST_DATA) / "layers";

  std::string shape_text(const Tensor& tensor) {
    std::string text = std::to_string(tensor.ne[0]);
    for (std::size_t i = 1; i < tensor.ne.size(); ++i) {
      if (i > 1 && tensor.ne[i] == 1 && (i == 3 || tensor.ne[3] == 1)) break;
      text += std::format("x{}", tensor.ne[i]);
    }
    return text;
  }

  // One line per node: number, category, op, name, type, shape, what the input
  // means; and the numbers of what it needs, with * where another layer is involved.
  std::string to_text(const GraphTemplate& graph, LayerId layer, const LayerSubgraph& subgraph) {
    std::map<TensorId, std::size_t> numbers;
    for (const LayerNode& node : subgraph.nodes) numbers.emplace(node.tensor, numbers.size() + 1);
    std::string text = std::format("layer {}: {} nodes, {} edges\n", layer.v, subgraph.nodes.size(),
                                   subgraph.edges.size());
    for (const LayerNode& node : subgraph.nodes) {
      const Tensor& tensor = graph.tensor(node.tensor);
      const std::string label = to_text(tensor.input);
      text += std::format(
          "{:3} {:18} {:14} {} {} {}{}", numbers[node.tensor], to_text(node.category),
          node.node == kNoNode ? to_text(tensor.kind) : graph.node(node.node).op, tensor.name,
          tensor.type, shape_text(tensor), label.empty() ? "" : " (" + label + ")");
      std::string sources;
      for (const LayerEdge& edge : subgraph.edges) {
        if (edge.to == node.tensor)
          sources += std::format(" {}{}", numbers[edge.from], edge.cross_layer ? "*" : "");
      }
      text += (sources.empty() ? "" : " <-" + sources) + "\n";
    }
    return text;
  }

  TEST(LayerSubgraph, OfTinyLlamaIsAsCheckedByHand) {
    modelgen::ModelSpec spec;
    spec.shape = "tinyllama-1.1b";
    spec.dims = {.layers = 22, .embd = 512, .heads = 8, .kv_heads = 2, .ff = 768, .vocab = 1000};
    TracedModel traced(generated_model(spec));
    const auto run = traced.run(greedy_tokens(5, 2));
    ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
    const auto steps = run.steps();
    ASSERT_EQ(steps.size(), 2U);
    ASSERT_EQ(steps[1].phase, Phase::Generate);
    const auto graph = graph_of(run.reader(), steps[1]);
    EXPECT_EQ(expect_whole_layers(*graph), 22);
    for (const int layer : {0, 5, 21}) {
      SCOPED_TRACE(layer);
      const std::string actual =
          to_text(*graph, LayerId{layer}, layer_subgraph(*graph, LayerId{layer}));
      const fs::path file = kLayers / std::format("tinyllama_{}.txt", layer);
      if (std::getenv("UPDATE_GOLDEN")) std::ofstream(file, std::ios::binary) << actual;
      std::ifstream in(file, std::ios::binary);
      EXPECT_EQ(actual, std::string(std::istreambuf_iterator<char>(in), {}));
    }
  }

  }  // namespace
}  // namespace tt::testing
