#include "tracer/format/names/names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/sessions/graph_maker.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using test::GraphMaker;
using test::kF16;
using test::kF32;
using test::kI64;

TEST(LayerOf, ParsesLayerFromLlamaCppNames) {
  const std::pair<const char*, std::int32_t> cases[] = {
      {"blk.0.attn_q.weight", 0},
      {"blk.21.ffn_down_exps.weight", 21},
      {"enc.blk.3.attn_norm.weight", 3},
      {"dec.blk.11.cross_attn_q.weight", 11},
      {"blk.61.nextn.eh_proj.weight", 61},
      {"Qcur-5", 5},
      {"Qcur-5 (view)", 5},
      {"Kcur-12 (reshaped) (permuted)", 12},
      {"g2 g_b(g_a(cur_2d))-7", 7},
      {"model.layers.{}.conv.conv-2", 2},
      {"cache_k_l0", 0},
      {"cache_v_l17 (view)", 17},
      {"cache_idx_k_l3 (view) (permuted)", 3},
      {"cache_ple_r_l4", 4},
      {"cache_r_l2 (view) (copy of conv_state_last-2)", 2},
      {"dsv4_lid_state_kv_l1", 1},
      {" (copy of new_state-9 (view))", 9},
      {"CPU#ffn_moe_topk-6#0", 6},
      {"blk.2.attn_q.weight (transposed)", 2},
      {"blk.4.hc_attn_scale.weight (view)", 4},
      // A trailing number that is not a layer.
      {"leaf_7", -1},
      {"node_312", -1},
      {"node_312 (view)", -1},
      {"k_l2", -1},
      {"attn_norm_2", -1},
      {"result_norm", -1},
      {"token_embd.weight", -1},
      {"blk.x.attn_q.weight", -1},
      {"blk.3", -1},
      {"Qcur-99999999999999", -1},
      {"-", -1},
      {"#", -1},
      {" (view)", -1},
      {"", -1},
  };
  for (const auto& [name, layer] : cases) EXPECT_EQ(layer_of(name).v, layer) << name;
}

// tests/data/weight_names.tsv: every weight name of the architectures that llama.cpp's own
// test-llama-archs writes (layer 0 represents all layers), and of the T5, BERT, RWKV, gemma3n
// and next-token-prediction families.
TEST(Names, OfWeightsDetermineLayerComponentAndRole) {
  std::ifstream file(source_path("tests/data/weight_names.tsv"));
  ASSERT_TRUE(file.is_open());
  int names = 0;
  for (std::string line; std::getline(file, line); ++names) {
    const std::string name = line.substr(0, line.find('\t'));
    std::ostringstream text;
    text << name << '\t' << layer_of(name).v << '\t'
         << to_text(component_of(name, TensorKind::Weight)) << '\t'
         << to_text(role_of(name, TensorKind::Weight));
    EXPECT_EQ(text.str(), line);
  }
  EXPECT_GT(names, 200);
}

TEST(Names, OfIntermediatesDetermineComponentAndRole) {
  const std::tuple<const char*, Component, Role> cases[] = {
      {"inp_embd", Component::Embedding, Role::None},
      {"embd", Component::Embedding, Role::None},
      {"attn_norm-3", Component::Norm, Role::Norm},
      {"norm-3", Component::Norm, Role::Norm},
      {"Qcur-3 (reshaped)", Component::Attention, Role::Q},
      {"Qcur_normed-3", Component::Attention, Role::Q},
      {"Kcur-3", Component::Attention, Role::K},
      {"Vcur-3 (view)", Component::Attention, Role::V},
      {"wqkv-3", Component::Attention, Role::Qkv},
      {"kq-3", Component::Attention, Role::Scores},
      {"kq_soft_max-3", Component::Attention, Role::Scores},
      {"kqv-3", Component::Attention, Role::None},
      {"kqv_out-3", Component::Attention, Role::None},
      {"attn_out-3", Component::Attention, Role::O},
      {"ffn_inp-3", Component::Other, Role::Residual},
      {"norm_w-3", Component::Norm, Role::Norm},
      {"ffn_norm-3", Component::Norm, Role::Norm},
      {"ffn_gate-3", Component::Ffn, Role::Gate},
      {"ffn_up-3", Component::Ffn, Role::Up},
      {"ffn_swiglu-3", Component::Ffn, Role::None},
      {"ffn_out-3", Component::Ffn, Role::Down},
      {"ffn_moe_logits-3", Component::Moe, Role::Router},
      {"ffn_moe_topk-3", Component::Moe, Role::Router},
      {"ffn_moe_weights_norm-3", Component::Moe, Role::Scores},
      {"ffn_moe_down-3", Component::Moe, Role::Down},
      {"ffn_shexp-3", Component::Moe, Role::None},
      {"l_out-3", Component::Other, Role::Residual},
      {"result_norm", Component::Norm, Role::Norm},
      {"result_output", Component::Output, Role::Logits},
      {"mamba_ssm_scan-3", Component::Ssm, Role::None},
      {"conv_states-3", Component::Ssm, Role::State},
      {"conv_output_silu-3", Component::Ssm, Role::Conv},
      {"node_17", Component::Other, Role::None},
      {" (view)", Component::Other, Role::None},
  };
  for (const auto& [name, component, role] : cases) {
    EXPECT_EQ(component_of(name, TensorKind::Intermediate), component) << name;
    EXPECT_EQ(role_of(name, TensorKind::Intermediate), role) << name;
  }
}

TEST(Names, OfCachesAndInputsFollowTheKind) {
  EXPECT_EQ(component_of("cache_k_l0", TensorKind::Kv), Component::KvCache);
  EXPECT_EQ(role_of("cache_k_l0 (view)", TensorKind::Kv), Role::K);
  EXPECT_EQ(role_of("cache_v_l0", TensorKind::Kv), Role::V);
  EXPECT_EQ(role_of("cache_s_l0", TensorKind::Kv), Role::State);
  EXPECT_EQ(component_of("conv_states_all-1", TensorKind::Kv), Component::KvCache);
  EXPECT_EQ(role_of("conv_states_all-1", TensorKind::Kv), Role::State);
  EXPECT_EQ(component_of("leaf_5", TensorKind::Input), Component::Input);
  EXPECT_EQ(role_of("attn_inp_kq_mask", TensorKind::Input), Role::None);
}

// Inputs as older library versions name them: only their consumers distinguish them.
TEST(LabelInputs, LabelsInputsByTheirConsumers) {
  GraphMaker m;
  const TensorId tokens = m.input("leaf_1", {2});
  const TensorId positions = m.input("leaf_2", {2});
  const TensorId cells = m.input("leaf_3", {2}, kI64);
  const TensorId mask = m.input("leaf_4", {256, 2}, kF32);
  const TensorId outputs = m.input("leaf_5", {1});
  const TensorId states = m.input("leaf_6", {1});
  const TensorId place = m.input("leaf_7", {2});
  const TensorId other = m.input("leaf_8", {8, 2}, kF32);
  const TensorId persisted = m.input("leaf_9", {1});
  const TensorId table = m.weight("token_embd.weight", {8, 100});
  const TensorId places = m.weight("position_embd.weight", {8, 64});
  const TensorId cache = m.leaf(TensorKind::Kv, "cache_k_l0", {8, 256}, kF16);
  const TensorId recurrent = m.leaf(TensorKind::Kv, "cache_s_l0", {64, 4});

  const TensorId embd = m.node("GET_ROWS", "embd", {8, 2}, {table, tokens});
  m.node("GET_ROWS", "pos_embd", {8, 2}, {places, place});
  m.node("GET_ROWS", "rows for the cache", {8, 1}, {embd, persisted});
  const TensorId k = m.node("ROPE", "Kcur-0", {8, 2}, {embd, positions});
  m.node("SET_ROWS", m.view(cache, "cache_k_l0 (view)", {8, 256}, 0), {k, cells, cache});
  const TensorId half = m.node("CPY", "mask as f16", {256, 2}, {mask});
  m.node("FLASH_ATTN_EXT", "kqv_out-0", {8, 2}, {k, cache, cache, half});
  const TensorId first = m.view(states, "first state", {1}, 0);
  m.node("GET_ROWS", "state", {64, 1}, {recurrent, first});
  m.node("ADD", "sum", {8, 2}, {embd, other});
  m.node("GET_ROWS", "last token", {8, 1}, {embd, outputs});
  label_inputs(m.graph);

  const auto label = [&](TensorId id) { return std::string(to_text(m.graph.tensor(id).input)); };
  EXPECT_EQ(label(tokens), "token ids");
  EXPECT_EQ(label(place), "rope positions");
  EXPECT_EQ(label(positions), "rope positions");
  EXPECT_EQ(label(cells), "cache positions");
  EXPECT_EQ(label(mask), "mask");
  EXPECT_EQ(label(states), "state copy");
  EXPECT_EQ(label(first), "state copy");
  EXPECT_EQ(label(outputs), "output ids");
  EXPECT_EQ(label(other), "other");
  EXPECT_EQ(label(persisted), "other") << "caches are still written after it";
  EXPECT_EQ(m.graph.tensor(mask).component, Component::Input);
  EXPECT_EQ(label(table), "") << "not an input";
}

TEST(AssignOpLayers, UsesOutputThenWeightThenNeighbours) {
  GraphMaker m;
  const auto layer = [&](TensorId id, int n) {
    m.graph.tensors[id.v].layer = LayerId{n};
    return id;
  };
  const TensorId x = m.input("x", {8}, kF32);
  const TensorId w0 = layer(m.weight("blk.0.attn_q.weight", {8, 8}), 0);
  const TensorId w1 = layer(m.weight("blk.1.attn_q.weight", {8, 8}), 1);
  const TensorId shared = m.weight("rope_freqs.weight", {8});
  m.node("SCALE", "node_0", {8}, {x});           // before the layers
  m.node("MUL_MAT", "node_1", {8}, {w0, x});     // by its weight
  m.node("ROPE", "node_2", {8}, {x, shared});    // between two ops of layer 0
  layer(m.node("ADD", "l_out-0", {8}, {x}), 0);  // by its output
  m.node("SCALE", "node_4", {8}, {x});           // between layer 0 and 1
  m.node("RMS_NORM", "node_5", {8}, {x});        // fused: by the MUL's weight
  m.node("MUL", "node_6", {8}, {m.graph.nodes[5].output, w1}, /*fused=*/true);
  m.node("SCALE", "node_7", {8}, {x});  // after the layers
  assign_op_layers(m.graph);

  std::vector<std::int32_t> layers;
  for (const Op& op : m.graph.ops) layers.push_back(op.layer.v);
  EXPECT_EQ(layers, (std::vector<std::int32_t>{-1, 0, 0, 0, -1, 1, -1}));
}

// The layers of the ops that `build` makes; a tensor's name determines its layer.
template <class Build>
std::vector<std::int32_t> op_layers(Build build) {
  GraphMaker m;
  build(m);
  for (Tensor& t : m.graph.tensors) t.layer = layer_of(t.name);
  assign_op_layers(m.graph);
  std::vector<std::int32_t> layers;
  for (const Op& op : m.graph.ops) layers.push_back(op.layer.v);
  return layers;
}

TEST(AssignOpLayers, DataFlowDecidesBetweenTwoLayers) {
  using Layers = std::vector<std::int32_t>;
  // A norm that begins layer 1: its source has another reader.
  EXPECT_EQ(op_layers([](GraphMaker& m) {
              const TensorId x = m.input("x", {8}, kF32);
              const TensorId out = m.node("ADD", "l_out-0", {8}, {x, x});
              const TensorId norm = m.node("RMS_NORM", "node_1", {8}, {out});
              m.node("ADD", "l_out-1", {8}, {norm, out});
            }),
            (Layers{0, 1, 1}));
  // A sum that ends layer 0: its sources, also through a view, have no other reader.
  EXPECT_EQ(op_layers([](GraphMaker& m) {
              const TensorId x = m.input("x", {8}, kF32);
              const TensorId ffn = m.node("MUL", "ffn_out-0", {8}, {x, x});
              const TensorId view = m.idle("VIEW", "ffn_out-0 (view)", {8}, {ffn});
              const TensorId sum = m.node("ADD", "node_2", {8}, {view, x});
              const TensorId norm = m.node("RMS_NORM", "norm-1", {8}, {sum});
              m.node("ADD", "l_out-1", {8}, {norm, sum});
            }),
            (Layers{0, 0, 1, 1}));
  // An op of layer 0 that runs after the first ops of layer 1.
  EXPECT_EQ(op_layers([](GraphMaker& m) {
              const TensorId x = m.input("x", {8}, kF32);
              const TensorId q = m.node("MUL", "Qcur-0", {8}, {x, x});
              m.node("SCALE", "conv_states-1", {8}, {x});
              const TensorId attention = m.node("FLASH_ATTN_EXT", "node_2", {8}, {q});
              m.node("SCALE", "beta-1", {8}, {x});
              m.node("ADD", "kqv_out-0", {8}, {attention, x});
            }),
            (Layers{0, 1, 0, 1, 0}));
}

TEST(AssignOpLayers, LayersMayShareWeights) {
  EXPECT_EQ(op_layers([](GraphMaker& m) {
              const TensorId x = m.input("x", {8}, kF32);
              const TensorId w = m.weight("blk.0.attn_q.weight", {8, 8});
              const TensorId norm = m.node("RMS_NORM", "attn_norm-1", {8}, {x});
              const TensorId product = m.node("MUL_MAT", "node_1", {8}, {w, norm});
              m.node("MUL", "Qcur-1", {8}, {product, x});
            }),
            (std::vector<std::int32_t>{1, 1, 1}));
}

TEST(AssignOpLayers, TensorsReadByAllLayersBelongToNone) {
  EXPECT_EQ(op_layers([](GraphMaker& m) {
              const TensorId x = m.input("x", {8}, kF32);
              const TensorId mask = m.input("mask", {8}, kF32);
              m.node("MUL", "Qcur-0", {8}, {x, x});
              const TensorId cast = m.node("CPY", "mask (copy)", {8}, {mask});
              m.node("SOFT_MAX", "kq_soft_max-0", {8}, {x, cast});
              m.node("SOFT_MAX", "kq_soft_max-1", {8}, {x, cast});
            }),
            (std::vector<std::int32_t>{0, -1, 0, 1}));
}

}  // namespace
}  // namespace tt
