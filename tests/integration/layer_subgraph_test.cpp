// Layers 0, 5 and 21 of the tinyllama shape as text, from a graph that the real engine ran. The
// model is narrower than TinyLlama 1.1B but has its 22 layers. The full width was run once: the
// texts differed only in shapes.
//
// UPDATE_GOLDEN=1 rewrites the files; check the diff by hand. The current files were checked
// line by line against the graph that llama.cpp builds (the loop of src/models/llama.cpp;
// build_qkv, build_attn and build_ffn of llama-graph.cpp; cpy_k, cpy_v, get_k and get_v of the
// cache):
//   - Input norm: RMS_NORM of the layer's input, times attn_norm.
//   - Q, K, V: one matrix product each, reshaped to heads. ROPE with inp_pos is applied to Q
//     and K, not to V. This shape has no rope factors. Order, as build_attn expands them: Q, V,
//     K.
//   - Cache: K and V, viewed as rows, are written to cache_k and cache_v at the positions of
//     their own index inputs. Attention reads permuted views of the caches, each after the
//     SET_ROWS that fills it: edges from both.
//   - Attention: FLASH_ATTN_EXT of permuted Q, K, V and the mask, reshaped, times attn_output.
//   - Residual: ffn_inp adds the layer's input directly.
//   - Feed-forward: norm times ffn_norm; gate and up from it; SWIGLU of both; down; l_out adds
//     ffn_inp.
//   - Layer 0 reads embd (the embedding) from outside twice: for norm and residual. Its
//     successors are the norm and the residual sum of layer 1.
//   - Layer 5 reads l_out-4 twice, and passes l_out-5 to the norm and residual sum of layer 6.
//     All edges to other layers are marked.
//   - Layer 21, the last, selects the rows of out_ids from its attention's output and from its
//     input (the residual). So l_out-20 is read twice, and ffn_inp adds the selected rows. Its
//     only successor is the output norm.
//   - 49, 49 and 51 nodes; 56, 56 and 59 edges: the sum of all sources, and two more for the
//     caches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <format>
#include <fstream>
#include <map>

#include "analysis/graph/layer_subgraph.h"
#include "tests/analysis/graph/layer_check.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

const fs::path kLayers = source_path("tests/data/layers");

std::string shape_text(const Tensor& tensor) {
  std::string text = std::to_string(tensor.ne[0]);
  for (std::size_t i = 1; i < tensor.ne.size(); ++i) {
    if (i > 1 && tensor.ne[i] == 1 && (i == 3 || tensor.ne[3] == 1)) break;
    text += std::format("x{}", tensor.ne[i]);
  }
  return text;
}

// One line per node: number, category, op, name, type, shape and label of an input; then the
// numbers of its sources, with * for those in another layer.
std::string to_text(const GraphTemplate& graph, LayerId layer, const LayerSubgraph& subgraph) {
  std::map<TensorId, std::size_t> numbers;
  for (const LayerNode& node : subgraph.nodes) numbers.emplace(node.tensor, numbers.size() + 1);
  std::string text = std::format("layer {}: {} nodes, {} edges\n", layer.v, subgraph.nodes.size(),
                                 subgraph.edges.size());
  for (const LayerNode& node : subgraph.nodes) {
    const Tensor& tensor = graph.tensor(node.tensor);
    const std::string label = to_text(tensor.input);
    text += std::format("{:3} {:18} {:14} {} {} {}{}", numbers[node.tensor], to_text(node.category),
                        node.node == kNoNode ? to_text(tensor.kind) : graph.node(node.node).op,
                        tensor.name, tensor.type, shape_text(tensor),
                        label.empty() ? "" : " (" + label + ")");
    std::string sources;
    for (const LayerEdge& edge : subgraph.edges) {
      if (edge.to == node.tensor)
        sources += std::format(" {}{}", numbers[edge.from], edge.cross_layer ? "*" : "");
    }
    text += (sources.empty() ? "" : " <-" + sources) + "\n";
  }
  return text;
}

TEST(LayerSubgraph, MatchesGoldenFilesOfTinyLlama) {
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
  EXPECT_EQ(expect_layer_subgraphs(*graph), 22);
  for (const int layer : {0, 5, 21}) {
    SCOPED_TRACE(layer);
    const std::string actual =
        to_text(*graph, LayerId{layer}, layer_subgraph(*graph, LayerSet::one(LayerId{layer})));
    const fs::path file = kLayers / std::format("tinyllama_{}.txt", layer);
    if (std::getenv("UPDATE_GOLDEN")) std::ofstream(file, std::ios::binary) << actual;
    std::ifstream in(file, std::ios::binary);
    EXPECT_EQ(actual, std::string(std::istreambuf_iterator<char>(in), {}));
  }
}

}  // namespace
}  // namespace tt::test
