#include "analysis/graph/layer_subgraph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/graph/graph_part.h"
#include "tests/analysis/graph/layer_check.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/names/names.h"

namespace tt {
namespace {

using test::GraphMaker;

// Derives layers from tensor names, as llama.cpp names them.
GraphTemplate with_layers(GraphMaker& m) {
  for (Tensor& t : m.graph.tensors) {
    t.layer = layer_of(t.view_of == kNoTensor || layer_of(t.name) != kNoLayer
                           ? t.name
                           : m.graph.tensor(t.view_of).name);
    t.component = component_of(t.name, t.kind);
  }
  assign_op_layers(m.graph);
  return std::move(m.graph);
}

// One line "category name <- sources" per node; * marks an edge to another layer.
std::string text_of(const GraphTemplate& graph, std::int32_t layer) {
  const LayerSubgraph subgraph = layer_subgraph(graph, LayerSet::one(LayerId{layer}));
  std::string text;
  for (const LayerNode& node : subgraph.nodes) {
    text += std::string(to_text(node.category)) + " " + graph.tensor(node.tensor).name;
    std::string sources;
    for (const LayerEdge& edge : subgraph.edges) {
      if (edge.to == node.tensor)
        sources += " " + graph.tensor(edge.from).name + (edge.cross_layer ? "*" : "");
    }
    text += (sources.empty() ? "" : " <-" + sources) + "\n";
  }
  return text;
}

TEST(LayerSubgraph, KeepsResidualEdges) {
  GraphMaker m;
  const TensorId embd = m.node("GET_ROWS", "embd", {8},
                               {m.weight("token_embd.weight", {8, 9}), m.input("inp_tokens", {1})});
  const TensorId norm = m.node("RMS_NORM", "norm-0", {8}, {embd});
  const TensorId ffn =
      m.node("MUL_MAT", "ffn_out-0", {8}, {m.weight("blk.0.ffn_down.weight", {8, 8}), norm});
  const TensorId out = m.node("ADD", "l_out-0", {8}, {ffn, embd});
  const TensorId next = m.node("RMS_NORM", "norm-1", {8}, {out});
  const TensorId sum = m.node("ADD", "l_out-1", {8}, {next, out});
  m.node("MUL", "result_norm", {8}, {sum, m.weight("output_norm.weight", {8})});
  const GraphTemplate graph = with_layers(m);
  EXPECT_EQ(text_of(graph, 0),
            "embedding embd\n"
            "layer norm-0 <- embd\n"
            "layer blk.0.ffn_down.weight\n"
            "layer ffn_out-0 <- blk.0.ffn_down.weight norm-0\n"
            "layer l_out-0 <- ffn_out-0 embd\n"
            "cross_layer_output norm-1 <- l_out-0*\n"
            "cross_layer_output l_out-1 <- norm-1* l_out-0*\n");
  EXPECT_EQ(text_of(graph, 1),
            "cross_layer_input l_out-0\n"
            "layer norm-1 <- l_out-0*\n"
            "layer l_out-1 <- norm-1 l_out-0*\n"
            "output result_norm <- l_out-1\n");
  test::expect_layer_subgraphs(graph);
}

// Layer 1 attends to cells that layer 0 wrote. In ggml the source of the view is the cache, not
// the SET_ROWS that must run before.
TEST(LayerSubgraph, FollowsCacheWrittenByAnotherLayer) {
  GraphMaker m;
  const TensorId x = m.input("inp", {8}, test::kF32);
  const TensorId cells = m.input("k_idxs", {1});
  const TensorId cache = m.leaf(TensorKind::Kv, "cache_k_l0", {8, 4});
  const TensorId k = m.node("MUL", "Kcur-0", {8}, {x, x});
  m.node("SET_ROWS", m.view(cache, "cache_k_l0 (view)", {8, 4}, 0), {k, cells, cache});
  const TensorId q = m.node("MUL", "Qcur-1", {8}, {x, x});
  const TensorId view = m.idle("VIEW", "cache_k_l0 (view)", {8, 2}, {cache});
  const TensorId turned = m.idle("PERMUTE", "cache_k_l0 (view) (permuted)", {2, 8}, {view});
  m.node("MUL_MAT", "kq-1", {2}, {turned, q});
  const GraphTemplate graph = with_layers(m);
  EXPECT_EQ(text_of(graph, 1),
            "infrastructure cache_k_l0\n"
            "cross_layer_input cache_k_l0 (view) <- cache_k_l0*\n"
            "infrastructure inp\n"
            "layer Qcur-1 <- inp\n"
            "layer cache_k_l0 (view) <- cache_k_l0* cache_k_l0 (view)*\n"
            "layer cache_k_l0 (view) (permuted) <- cache_k_l0 (view)\n"
            "layer kq-1 <- cache_k_l0 (view) (permuted) Qcur-1\n");
  test::expect_layer_subgraphs(graph);
}

TEST(LayerSubgraph, ResolvesViewsOfInputsAndOutputs) {
  GraphMaker m;
  const TensorId x = m.input("inp", {8}, test::kF32);
  const TensorId out = m.node("ADD", "l_out-0", {8}, {x, x});
  const TensorId half = m.idle("VIEW", "l_out-0 (view)", {4}, {out});
  const TensorId quarter = m.idle("VIEW", "l_out-0 (view) (view)", {2}, {half});
  m.node("RMS_NORM", "norm-1", {2}, {quarter});
  const GraphTemplate graph = with_layers(m);
  EXPECT_EQ(text_of(graph, 1),
            "cross_layer_input l_out-0\n"
            "cross_layer_input l_out-0 (view) <- l_out-0*\n"
            "cross_layer_input l_out-0 (view) (view) <- l_out-0 (view)*\n"
            "layer norm-1 <- l_out-0 (view) (view)*\n");
  test::expect_layer_subgraphs(graph);
}

TEST(LayerSubgraph, SharedInputsAreInfrastructure) {
  GraphMaker m;
  const TensorId x = m.input("inp", {8}, test::kF32);
  const TensorId mask = m.input("mask", {8}, test::kF32);
  const TensorId q = m.node("MUL", "Qcur-0", {8}, {x, x});
  const TensorId cast = m.node("CPY", "mask (copy)", {8}, {mask});
  m.node("SOFT_MAX", "kq_soft_max-0", {8}, {q, cast});
  const TensorId other = m.node("MUL", "Qcur-1", {8}, {x, x});
  m.node("SOFT_MAX", "kq_soft_max-1", {8}, {other, cast});
  const GraphTemplate graph = with_layers(m);
  EXPECT_EQ(text_of(graph, 1),
            "infrastructure mask\n"
            "infrastructure mask (copy) <- mask\n"
            "infrastructure inp\n"
            "layer Qcur-1 <- inp\n"
            "layer kq_soft_max-1 <- Qcur-1 mask (copy)\n");
  test::expect_layer_subgraphs(graph, test::Layers::AsGiven);
}

TEST(LayerSubgraph, UnknownLayerIsEmpty) {
  const GraphTemplate graph = test::small_graph();
  EXPECT_EQ(layer_subgraph(graph, LayerSet::one(LayerId{7})), LayerSubgraph{});
}

// Random graphs that are valid in ggml but of no real model: each tensor is computed once, sources
// precede readers; views, writes into leaves, ops and layers are random.
GraphTemplate random_graph(test::Dice& dice) {
  GraphMaker m;
  const auto any = [&] {
    return TensorId{static_cast<std::uint32_t>(dice.below(m.graph.tensors.size()))};
  };
  const auto name = [&](const char* stem) {
    return dice.one_in(3) ? std::string("node")
                          : stem + std::string("-") + std::to_string(dice.below(4));
  };
  for (std::size_t i = 2 + dice.size(6); i > 0; --i) {
    const TensorKind kind = dice.word(TensorKind::Input);
    const std::string weight =
        dice.one_in(3) ? "shared.weight" : "blk." + std::to_string(dice.below(4)) + ".weight";
    m.leaf(kind, kind == TensorKind::Weight ? weight.c_str() : name("leaf").c_str(), {8});
  }
  for (std::size_t i = dice.size(30); i > 0; --i) {
    if (dice.one_in(3)) {
      m.idle("VIEW", name("view").c_str(), {4}, {any()});
      continue;
    }
    std::vector<TensorId> sources;
    for (std::size_t k = dice.size(3); k > 0; --k)
      sources.push_back(dice.one_in(8) ? kNoTensor : any());
    const bool fused = !m.graph.ops.empty() && dice.one_in(6) &&
                       m.graph.ops.back().last().v + 1 == m.graph.nodes.size();
    if (dice.one_in(4)) {
      m.node("SET_ROWS", m.view(any(), name("written").c_str(), {8}, 0), sources, fused);
    } else {
      m.node("MUL", name("made").c_str(), {8}, sources, fused);
    }
  }
  return with_layers(m);
}

TEST(LayerSubgraph, MatchesReferenceOnRandomGraphs) {
  int layers = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    test::Dice dice(seed);
    layers += test::expect_layer_subgraphs(random_graph(dice), test::Layers::AsGiven);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(layers, 1000);
}

// A file may contain any template whose indices are in range.
TEST(LayerSubgraph, AcceptsAnyTemplate) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    test::Dice dice(seed);
    const GraphTemplate graph = test::random_template(dice, {});
    for (const Tensor& tensor : graph.tensors) {
      const LayerSubgraph subgraph = layer_subgraph(graph, LayerSet::one(tensor.layer));
      EXPECT_LE(subgraph.nodes.size(), graph.tensors.size());
      for (const LayerEdge& edge : subgraph.edges) {
        EXPECT_TRUE(std::ranges::contains(subgraph.nodes, edge.from, &LayerNode::tensor));
        EXPECT_TRUE(std::ranges::contains(subgraph.nodes, edge.to, &LayerNode::tensor));
      }
    }
  }
}

TEST(GraphPart, StepUsesItsTemplate) {
  Step unrecorded = test::small_step(1);
  unrecorded.graph = {};
  unrecorded.allocation = {};
  unrecorded.op_ends.clear();
  unrecorded.slots.clear();
  const test::SmallSession session({test::small_step(0), unrecorded});
  const SessionReader reader = session.reader();
  const auto layer = part_of_step(reader, StepId{0}, LayerSet::one(LayerId{1}));
  ASSERT_TRUE(layer.has_value()) << layer.error().message;
  EXPECT_EQ(layer->id, TemplateId{1});
  EXPECT_EQ(layer->layers, 2u);
  EXPECT_EQ(layer->subgraph, layer_subgraph(test::small_graph(), LayerSet::one(LayerId{1})));
  EXPECT_FALSE(layer->subgraph.nodes.empty());

  const std::pair<StepId, LayerId> absent[] = {
      {StepId{0}, LayerId{2}}, {StepId{1}, LayerId{0}}, {StepId{2}, LayerId{0}}};
  for (const auto& [step, number] : absent) {
    const auto none = part_of_step(reader, step, LayerSet::one(number));
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().kind, TraceError::Kind::NotFound);
  }
}

TEST(GraphPart, TemplateAcceptsExistingLayers) {
  const test::SmallSession session({test::small_step(0)});
  const SessionReader reader = session.reader();
  const auto part = [&](const char* layers) {
    return part_of_template(reader, TemplateId{1}, parse_layers(layers).value());
  };
  const auto whole = part("all");
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(whole->subgraph.nodes.size(), test::small_graph().tensors.size());
  EXPECT_FALSE(whole->step.has_value());
  EXPECT_TRUE(part("0-1,outside").has_value());
  const auto absent = part("0-2");
  ASSERT_FALSE(absent.has_value());
  EXPECT_TRUE(absent.error().message.contains("no layer 2")) << absent.error().message;
  EXPECT_FALSE(part_of_template(reader, TemplateId{2}, LayerSet::all()).has_value());
}

TEST(LayerSet, ParsesListsAndRanges) {
  const auto has = [](const char* text) {
    const auto set = parse_layers(text);
    EXPECT_TRUE(set.has_value()) << text;
    std::string layers;
    for (std::int32_t layer = -1; set && layer < 8; ++layer) {
      if (set->has(LayerId{layer})) layers += layer < 0 ? "-" : std::to_string(layer);
    }
    return layers;
  };
  EXPECT_EQ(has("0"), "0");
  EXPECT_EQ(has("0,3-5"), "0345");
  EXPECT_EQ(has("outside"), "-");
  EXPECT_EQ(has("6,outside,2-2"), "-26");
  EXPECT_EQ(has("all"), "-01234567");
  for (const char* text : {"", ",", "1,", "x", "-1", "3-1", "1-", "0-1-2", "1 ,2", "2147483648",
                           "all,1", "+1", "1--2"}) {
    EXPECT_FALSE(parse_layers(text).has_value()) << text;
  }
  for (const char* text : {"0", "0,3-5", "outside", "6,2,outside", "all"})
    EXPECT_EQ(to_text(parse_layers(text).value()), text);
}

}  // namespace
}  // namespace tt
