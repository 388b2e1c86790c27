#include "tracer/format/access/access.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>

#include "tests/support/sessions/graph_maker.h"

namespace tt {
namespace {

using test::GraphMaker;
using test::kF16;
using test::kF32;
using test::kI32;
using test::kI64;
using test::kQ4K;
using test::kQ8;

// One line per access: "op 0 reads 96 of x".
std::string rows_of(const GraphTemplate& graph, const Step& step) {
  std::ostringstream out;
  for_each_access(graph, accesses_of(graph), step, [&](const StepAccess& a) {
    out << "op " << a.op.v << (a.write ? " writes " : " reads ") << a.touched.v << " of "
        << graph.tensor(a.tensor).name;
    if (!a.range.empty()) out << " at " << a.range.offset << "+" << a.range.length;
    if (a.expert >= 0) out << ", expert " << a.expert << " rank " << a.rank;
    if (a.expert >= 0 && !std::isnan(a.score)) out << " score " << a.score;
    out << "\n";
  });
  return out.str();
}

Step step_of(const GraphTemplate& graph) {
  Step step;
  step.op_ends.resize(graph.ops.size());
  step.slots.resize(graph.slots.size());
  return step;
}

TEST(Accesses, FusedPairReadsBothSourcesAndWritesOnlyLastOutput) {
  GraphMaker m;
  const TensorId x = m.input("x", {6, 4}, kF32);
  const TensorId w = m.weight("weight", {6});
  const TensorId norm = m.node("RMS_NORM", "norm", {6, 4}, {x});
  m.node("MUL", "attn_norm", {6, 4}, {norm, w}, /*fused=*/true);
  EXPECT_EQ(rows_of(m.graph, step_of(m.graph)),
            "op 0 reads 96 of x\n"
            "op 0 reads 24 of weight\n"
            "op 0 writes 96 of attn_norm\n");
}

TEST(Accesses, ReadsComeInSourceOrderBeforeTheWrite) {
  GraphMaker m;
  const TensorId k = m.input("k", {4, 2}, kF32);
  const TensorId q = m.input("q", {4, 3}, kF32);
  m.node("MUL_MAT", "kq", {2, 3}, {k, q});
  m.node("SCALE", "scaled", {2, 3}, {m.graph.nodes[0].output});
  EXPECT_EQ(rows_of(m.graph, step_of(m.graph)),
            "op 0 reads 32 of k\n"
            "op 0 reads 48 of q\n"
            "op 0 writes 24 of kq\n"
            "op 1 reads 24 of kq\n"
            "op 1 writes 24 of scaled\n");
}

TEST(Accesses, TensorUsedTwiceIsReadOnce) {
  GraphMaker m;
  const TensorId x = m.input("x", {6, 4}, kF32);
  const TensorId row = m.view(x, "row", {6}, 24);
  m.node("MUL", "square", {6, 4}, {x, x});
  m.node("ADD", "sum", {6, 4}, {row, x});
  EXPECT_EQ(rows_of(m.graph, step_of(m.graph)),
            "op 0 reads 96 of x\n"
            "op 0 writes 96 of square\n"
            "op 1 reads 96 of x\n"
            "op 1 writes 96 of sum\n");
}

TEST(Accesses, GetRowsReadsTheSelectedRowsAndTheWholeList) {
  GraphMaker m;
  const TensorId table = m.weight("token_embd.weight", {64, 100}, kQ8);
  m.graph.tensors[table.v].file = {.file = 0, .offset = 4096, .length = 6800};
  const TensorId ids = m.input("inp_tokens", {3});
  m.node("GET_ROWS", "embd", {64, 3}, {table, ids});
  const SlotId slot = m.slot(SlotKind::TokenIds, ids);
  Step step = step_of(m.graph);
  step.slots[slot.v].ints = {17, 5, 17};
  EXPECT_EQ(rows_of(m.graph, step),
            "op 0 reads 68 of token_embd.weight at 4436+68\n"
            "op 0 reads 68 of token_embd.weight at 5252+68\n"
            "op 0 reads 12 of inp_tokens\n"
            "op 0 writes 768 of embd\n");
  const std::vector<Access> accesses = accesses_of(m.graph);
  EXPECT_EQ(accesses[0].extent, Extent::Rows);
  EXPECT_EQ(accesses[0].slot, slot);
  EXPECT_EQ(accesses[0].unit, Bytes{68});
  EXPECT_EQ(accesses[0].stride, 68u);
}

TEST(Accesses, SetRowsWritesTheListedRowsAndDoesNotReadTheCache) {
  GraphMaker m;
  const TensorId cache = m.leaf(TensorKind::Kv, "cache_k_l0", {8, 256}, kF16);
  const TensorId k = m.input("Kcur-0", {8, 2}, kF32);
  const TensorId cells = m.input("attn_inp_k_idxs", {2}, kI64);
  const TensorId out = m.view(cache, "cache_k_l0 (view)", {8, 256}, 0);
  m.node("SET_ROWS", out, {k, cells, cache});
  const SlotId slot = m.slot(SlotKind::CachePositions, cells);
  Step step = step_of(m.graph);
  step.slots[slot.v].ints = {7, 8};
  EXPECT_EQ(rows_of(m.graph, step),
            "op 0 reads 64 of Kcur-0\n"
            "op 0 reads 16 of attn_inp_k_idxs\n"
            "op 0 writes 32 of cache_k_l0 (view)\n");
}

TEST(Accesses, SetRowsOfATransposedCacheCountsElements) {
  GraphMaker m;
  const TensorId cache = m.leaf(TensorKind::Kv, "cache_v_l0", {256, 8}, kF16);
  const TensorId v = m.input("Vcur-0", {1, 8}, kF32);
  const TensorId cells = m.input("attn_inp_v_idxs", {8}, kI64);
  const TensorId out = m.view(cache, "cache_v_l0 (reshaped)", {1, 2048}, 0);
  m.graph.tensors[out.v].nb = {2, 2, 4096, 4096};
  m.node("SET_ROWS", out, {v, cells, out});
  const SlotId slot = m.slot(SlotKind::CachePositions, cells);
  Step step = step_of(m.graph);
  for (std::int64_t row = 0; row < 8; ++row) step.slots[slot.v].ints.push_back(row * 256 + 3);
  EXPECT_EQ(rows_of(m.graph, step),
            "op 0 reads 32 of Vcur-0\n"
            "op 0 reads 64 of attn_inp_v_idxs\n"
            "op 0 writes 16 of cache_v_l0 (reshaped)\n");
}

// Two tokens, two of four experts each.
struct Moe {
  GraphMaker m;
  TensorId weight, ids, scores;
  SlotId experts;
  Moe() {
    weight = m.weight("blk.3.ffn_up_exps.weight", {256, 8, 4}, kQ4K);
    m.graph.tensors[weight.v].file = {.file = 1, .offset = 10000, .length = 4608};
    const TensorId x = m.input("ffn_norm-3", {256, 1, 2}, kF32);
    ids = m.input("ffn_moe_topk-3", {2, 2}, kI32);
    scores = m.input("ffn_moe_weights-3", {1, 2, 2}, kF32);
    m.node("MUL_MAT_ID", "ffn_moe_up-3", {8, 2, 2}, {weight, x, ids});
    experts = m.slot(SlotKind::Experts, ids, LayerId{3});
  }
};

TEST(Accesses, MulMatIdIsOneAccessPerExpertWithItsBestRankAndSliceOfTheFile) {
  Moe moe;
  Step step = step_of(moe.m.graph);
  step.slots[0].ints = {2, 0, 3, 2};  // token 0: 2 then 0; token 1: 3 then 2
  EXPECT_EQ(rows_of(moe.m.graph, step),
            "op 0 reads 1152 of blk.3.ffn_up_exps.weight at 10000+1152, expert 0 rank 1\n"
            "op 0 reads 1152 of blk.3.ffn_up_exps.weight at 12304+1152, expert 2 rank 0\n"
            "op 0 reads 1152 of blk.3.ffn_up_exps.weight at 13456+1152, expert 3 rank 0\n"
            "op 0 reads 2048 of ffn_norm-3\n"
            "op 0 reads 16 of ffn_moe_topk-3\n"
            "op 0 writes 128 of ffn_moe_up-3\n");
}

TEST(Accesses, ExpertHasRoutingWeightOfItsBestRankInItsLayer) {
  Moe moe;
  moe.m.slot(SlotKind::ExpertScores, moe.scores, LayerId{2});  // another layer's: ignored
  moe.m.slot(SlotKind::ExpertScores, moe.scores, LayerId{3});
  Step step = step_of(moe.m.graph);
  step.slots[0].ints = {2, 0, 3, 2};
  step.slots[1].floats = {9, 9, 9, 9};
  step.slots[2].floats = {0.75F, 0.25F, 0.625F, 0.375F};
  const std::string rows = rows_of(moe.m.graph, step);
  EXPECT_NE(rows.find("expert 0 rank 1 score 0.25\n"), std::string::npos) << rows;
  EXPECT_NE(rows.find("expert 2 rank 0 score 0.75\n"), std::string::npos) << rows;
  EXPECT_NE(rows.find("expert 3 rank 0 score 0.625\n"), std::string::npos) << rows;
}

TEST(Accesses, IgnoresExpertsOutsideTheWeight) {
  Moe moe;
  Step step = step_of(moe.m.graph);
  step.slots[0].ints = {-1, 4, 4, -1};
  EXPECT_EQ(rows_of(moe.m.graph, step),
            "op 0 reads 2048 of ffn_norm-3\n"
            "op 0 reads 16 of ffn_moe_topk-3\n"
            "op 0 writes 128 of ffn_moe_up-3\n");
}

// Two heads interleaved in each cell of the cache, viewed head by head.
struct Attention {
  GraphMaker m;
  TensorId mask;
  explicit Attention(bool with_slot) {
    const TensorId q = m.input("q", {16, 2, 4}, kF32);
    const auto cache_view = [&](const char* cache, const char* name) {
      const TensorId root = m.leaf(TensorKind::Kv, cache, {32, 256}, kF16);
      const TensorId view = m.view(root, name, {16, 256, 2}, 0);
      m.graph.tensors[view.v].nb = {2, 64, 32, 16384};
      return view;
    };
    const TensorId k = cache_view("cache_k_l0", "k");
    const TensorId v = cache_view("cache_v_l0", "v");
    mask = m.input("attn_inp_kq_mask", {256, 4}, kF16);
    m.node("FLASH_ATTN_EXT", "kqv_out-0", {16, 4, 2}, {q, k, v, mask});
    if (with_slot) m.slot(SlotKind::AttendedCells, mask);
  }
};

TEST(Accesses, AttentionReadsCellsThatAnyQueryAttendsTo) {
  Attention a(/*with_slot=*/true);
  Step step = step_of(a.m.graph);
  step.slots[0].ints = {0, 1, 2, 9};
  EXPECT_EQ(rows_of(a.m.graph, step),
            "op 0 reads 512 of q\n"
            "op 0 reads 256 of k\n"
            "op 0 reads 256 of v\n"
            "op 0 reads 1024 of attn_inp_kq_mask\n"
            "op 0 writes 512 of kqv_out-0\n");
}

TEST(Accesses, WithoutSlotReadsWholeViewOrLongestPossibleList) {
  Attention a(/*with_slot=*/false);
  EXPECT_NE(rows_of(a.m.graph, step_of(a.m.graph)).find("reads 16384 of k\n"), std::string::npos);

  GraphMaker m;
  const TensorId table = m.weight("table", {8, 100});
  const TensorId ids = m.input("ids", {3});
  m.node("GET_ROWS", "rows", {8, 3}, {table, ids});
  EXPECT_NE(rows_of(m.graph, step_of(m.graph)).find("reads 96 of table\n"), std::string::npos);
}

TEST(Accesses, OpThatDidNotRunHasNone) {
  GraphMaker m;
  const TensorId x = m.input("x", {6}, kF32);
  m.node("SILU", "a", {6}, {x});
  m.node("SILU", "b", {6}, {m.graph.nodes[0].output});
  Step step = step_of(m.graph);
  step.aborted = true;
  step.op_ends.resize(1);
  EXPECT_EQ(rows_of(m.graph, step), "op 0 reads 24 of x\nop 0 writes 24 of a\n");
  step.op_ends.clear();
  EXPECT_EQ(rows_of(m.graph, step), "");
  step.aborted = false;  // ran completely, only its times were dropped
  EXPECT_EQ(totals_of(m.graph, accesses_of(m.graph), step).accesses, 4u);
}

TEST(Accesses, WithoutSlotValuesOmitsDependentAccesses) {
  Moe moe;
  Step step = step_of(moe.m.graph);
  EXPECT_EQ(rows_of(moe.m.graph, step).find("ffn_up_exps"), std::string::npos);
  step.slots.clear();
  EXPECT_EQ(rows_of(moe.m.graph, step),
            "op 0 reads 2048 of ffn_norm-3\n"
            "op 0 reads 16 of ffn_moe_topk-3\n"
            "op 0 writes 128 of ffn_moe_up-3\n");
}

TEST(Accesses, ViewOfWeightIsWithinItsFileRange) {
  GraphMaker m;
  const TensorId w = m.weight("attn_qkv.weight", {8, 12});
  m.graph.tensors[w.v].file = {.file = 2, .offset = 1000, .length = 384};
  const TensorId k = m.view(w, "k part", {8, 4}, 128);
  const TensorId x = m.input("x", {8}, kF32);
  m.node("MUL_MAT", "k", {4}, {k, x});
  const Access read = accesses_of(m.graph)[0];
  EXPECT_EQ(read.range, (FileRange{.file = 2, .offset = 1128, .length = 128}));
}

// A template with every kind of extent, and steps with random lists.
TEST(Totals, EqualTheSumOverAllAccesses) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto some = [&](std::int64_t limit, std::size_t n) {
      std::vector<std::int64_t> values(n);
      for (std::int64_t& v : values) {
        v = static_cast<std::int64_t>(random() % static_cast<unsigned>(limit + 1)) -
            (seed % 5 == 0);
      }
      return values;
    };
    GraphMaker m;
    const auto tokens = static_cast<std::int64_t>(1 + random() % 7);
    const TensorId table = m.weight("token_embd.weight", {64, 50}, kQ8);
    const TensorId ids = m.input("inp_tokens", {tokens});
    m.node("GET_ROWS", "embd", {64, tokens}, {table, ids});
    m.slot(SlotKind::TokenIds, ids);
    const TensorId experts = m.input("topk", {2, tokens});
    const TensorId probs = m.node("SOFT_MAX", "probs", {1, 8, tokens}, {ids});
    m.node("GET_ROWS", "weights", {1, 2, tokens}, {probs, experts});
    m.slot(SlotKind::Experts, experts, LayerId{0});
    const TensorId up = m.weight("blk.0.ffn_up_exps.weight", {64, 4, 8}, kQ8);
    m.node("MUL_MAT_ID", "ffn_moe_up-0", {4, 2, tokens}, {up, m.graph.nodes[0].output, experts});
    const TensorId cache = m.leaf(TensorKind::Kv, "cache_k_l0", {64, 32}, kF16);
    const TensorId cells = m.input("cells", {tokens}, kI64);
    m.node("SET_ROWS", m.view(cache, "cache_k_l0 (view)", {64, 32}, 0),
           {m.graph.nodes[0].output, cells, cache});
    m.slot(SlotKind::CachePositions, cells);
    const TensorId mask = m.input("mask", {32, tokens}, kF16);
    m.node("FLASH_ATTN_EXT", "kqv_out-0", {64, tokens},
           {m.graph.nodes[0].output, cache, cache, mask});
    m.slot(SlotKind::AttendedCells, mask);

    Step step = step_of(m.graph);
    const auto n = static_cast<std::size_t>(tokens);
    const std::int64_t limits[] = {50, 8, 32, 32};
    const std::size_t lengths[] = {n, 2 * n, n, 1 + random() % 32};
    for (std::size_t i = 0; i < step.slots.size(); ++i) {
      if (random() % 8 != 0) step.slots[i].ints = some(limits[i], lengths[i]);
    }
    if (seed % 7 == 0) {
      step.aborted = true;
      step.op_ends.resize(random() % step.op_ends.size());
    }

    const std::vector<Access> accesses = accesses_of(m.graph);
    AccessTotals sum;
    for_each_access(m.graph, accesses, step, [&](const StepAccess& a) {
      ++sum.accesses;
      (a.write ? sum.written : sum.read) += a.touched;
    });
    const AccessTotals totals = totals_of(m.graph, accesses, step);
    EXPECT_EQ(totals.accesses, sum.accesses);
    EXPECT_EQ(totals.read, sum.read);
    EXPECT_EQ(totals.written, sum.written);
  }
}

Tensor head_weight(const char* name, Role role, test::Shape shape, test::Type type) {
  Tensor t = test::dense(name, shape, type);
  t.kind = TensorKind::Weight;
  t.role = role;
  return t;
}

TEST(HeadGeometry, GivesByteRangesOfHeads) {
  // 32 query heads and 4 KV heads of 64.
  const auto geometry = [](const Tensor& t) { return head_geometry(t, {}, {32, 4}); };
  EXPECT_EQ(geometry(head_weight("blk.0.attn_q.weight", Role::Q, {2048, 2048}, kQ4K)),
            (HeadGeometry{.count = 32, .bytes = Bytes{64 * 1152}}));
  EXPECT_EQ(geometry(head_weight("blk.0.attn_v.weight", Role::V, {2048, 256}, kQ4K)),
            (HeadGeometry{.count = 4, .bytes = Bytes{64 * 1152}}));
  EXPECT_EQ(
      geometry(head_weight("blk.0.attn_output.weight", Role::O, {2048, 2048}, kQ8)),
      (HeadGeometry{.count = 32, .bytes = Bytes{68}, .by_columns = true, .row_stride = 2176}));
  EXPECT_EQ(geometry(head_weight("blk.0.attn_k_b.weight", Role::K, {128, 512, 32}, kF16)),
            (HeadGeometry{.count = 32, .bytes = Bytes{131072}}));
}

TEST(HeadGeometry, IsEmptyIfBytesAreSharedByHeads) {
  const auto count = [](const Tensor& t) { return head_geometry(t, {}, {32, 4}).count; };
  EXPECT_EQ(count(head_weight("blk.0.attn_output.weight", Role::O, {2048, 2048}, kQ4K)), 0u)
      << "a block of 256 spans four heads of 64";
  EXPECT_EQ(count(head_weight("blk.0.attn_q_a.weight", Role::Q, {2048, 1024}, kF16)), 0u);
  EXPECT_EQ(count(head_weight("blk.0.attn_q.scale", Role::Q, {1}, kF32)), 0u);
  EXPECT_EQ(count(head_weight("blk.0.ffn_up.weight", Role::Up, {2048, 2048}, kF16)), 0u);
  EXPECT_EQ(
      head_geometry(head_weight("blk.0.attn_q.weight", Role::Q, {64, 64}, kF32), {}, {}).count, 0u);
}

// A hybrid model: the first layer has no attention, the others have 8 or 4 KV heads.
TEST(HeadGeometry, DependsOnLayersAttention) {
  GraphMaker m;
  const auto attention = [&](std::int32_t layer, std::int64_t kv_heads, bool fused) {
    const TensorId q = m.input("q", {64, 5, 16}, test::kF32);
    const TensorId k = m.input("k", {64, 32, kv_heads}, test::kF16);
    if (fused) {
      m.node("FLASH_ATTN_EXT", "kqv_out", {64, 16, 5}, {q, k, k});
    } else {
      m.node("MUL_MAT", "kq-2", {32, 5, 16}, {k, q});
    }
    m.graph.ops.back().layer = LayerId{layer};
  };
  attention(1, 8, true);
  attention(2, 4, false);
  const LayerHeads layers = heads_of_layers(m.graph);
  EXPECT_EQ(layers, (LayerHeads{{LayerId{1}, {16, 8}}, {LayerId{2}, {16, 4}}}));
  const auto count = [&](std::int32_t layer, Role role) {
    Tensor weight = head_weight("w", role, {1024, role == Role::Q ? 1024 : 512}, test::kF16);
    weight.layer = LayerId{layer};
    return head_geometry(weight, layers, {16, 8}).count;
  };
  EXPECT_EQ(count(0, Role::O), 0u) << "e.g. of a convolution";
  EXPECT_EQ(count(1, Role::K), 8u);
  EXPECT_EQ(count(2, Role::V), 4u);
  EXPECT_EQ(count(2, Role::Q), 16u);
}

TEST(Category, FollowsKindLayerAndPositionInGraph) {
  GraphMaker m;
  const auto named = [&](TensorId id, Component component, LayerId layer) {
    m.graph.tensors[id.v].component = component;
    m.graph.tensors[id.v].layer = layer;
    return id;
  };
  const TensorId tokens = m.input("inp_tokens", {3});
  const TensorId table =
      named(m.weight("token_embd.weight", {8, 9}), Component::Embedding, kNoLayer);
  const TensorId q =
      named(m.weight("blk.0.attn_q.weight", {8, 8}), Component::Attention, LayerId{0});
  const TensorId freqs = named(m.weight("rope_freqs.weight", {4}), Component::Attention, kNoLayer);
  const TensorId norm = named(m.weight("output_norm.weight", {8}), Component::Norm, kNoLayer);
  const TensorId cache =
      named(m.leaf(TensorKind::Kv, "cache_k_l0", {8, 9}), Component::KvCache, LayerId{0});
  const TensorId embd = m.node("GET_ROWS", "node_0", {8, 3}, {table, tokens});
  const TensorId query = m.node("MUL_MAT", "node_1", {8, 3}, {q, embd});
  const TensorId last = m.node("MUL", "node_2", {8, 3}, {query, norm});
  m.graph.ops[1].layer = LayerId{0};

  const std::vector<Category> categories = categories_of(m.graph);
  EXPECT_EQ(categories[tokens.v], Category::Infrastructure);
  EXPECT_EQ(categories[cache.v], Category::Infrastructure);
  EXPECT_EQ(categories[freqs.v], Category::Infrastructure);
  EXPECT_EQ(categories[table.v], Category::Embedding);
  EXPECT_EQ(categories[q.v], Category::Layer);
  EXPECT_EQ(categories[norm.v], Category::Output);
  EXPECT_EQ(categories[embd.v], Category::Embedding) << "before the first layer";
  EXPECT_EQ(categories[query.v], Category::Layer);
  EXPECT_EQ(categories[last.v], Category::Output) << "after the last layer";
}

TEST(Category, TensorsComputedFromInputsOnlyAreInfrastructure) {
  GraphMaker m;
  const TensorId mask = m.input("mask", {8}, kF32);
  const TensorId given = m.input("inp_embd", {8}, kF32);
  m.graph.tensors[given.v].input = InputLabel::Embeddings;
  const TensorId freqs = m.weight("rope_freqs.weight", {8});
  const TensorId cast = m.node("CPY", "mask (copy)", {8}, {mask});
  const TensorId scaled = m.node("MUL", "node_1", {8}, {cast, freqs});
  const TensorId embd = m.node("SCALE", "node_2", {8}, {given});
  const TensorId norm = m.node("RMS_NORM", "norm-0", {8}, {embd});
  m.graph.ops[3].layer = LayerId{0};
  const TensorId between = m.node("ADD", "node_4", {8}, {norm, scaled});
  const TensorId view = m.idle("VIEW", " (view)", {4}, {norm});
  m.node("RMS_NORM", "norm-1", {8}, {between});
  m.graph.ops[5].layer = LayerId{1};
  EXPECT_EQ(categories_of(m.graph)[cast.v], Category::Infrastructure);
  EXPECT_EQ(categories_of(m.graph)[scaled.v], Category::Infrastructure);
  EXPECT_EQ(categories_of(m.graph)[embd.v], Category::Embedding);
  EXPECT_EQ(categories_of(m.graph)[between.v], Category::Layer);
  EXPECT_EQ(categories_of(m.graph)[view.v], Category::Layer) << "like the tensor it views";
}

}  // namespace
}  // namespace tt
