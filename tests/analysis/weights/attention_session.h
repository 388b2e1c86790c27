// Random attention sessions for property tests of heads, caches and sizes. They vary:
// - weights: Q, K, V and O separate or joint, slices per head (MLA) or low-rank factors, block
//   types that do or do not fit into a head, head counts that do or do not divide the rows,
//   reads of the whole tensor or of a view;
// - caches: writes to any cells, V by rows or transposed, reads of a window or of the attended
//   cells, recurrent states;
// - steps: complete, cancelled, or without slot values.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sessions/graph_maker.h"
#include "tests/support/sessions/random_session.h"
#include "tracer/format/names/names.h"

namespace tt::test {

struct AttentionShape {
  static constexpr std::int64_t kCells = 24;  // per cache
  std::int64_t heads = 2, kv_heads = 1, head = 4;
  std::int32_t layers = 2;
  Type type = kF32, cache_type = kF16;
  bool joint = false, low_rank = false, slices = false, transposed = false, states = false;
  std::int64_t width() const { return heads * head; }
  std::int64_t kv_width() const { return kv_heads * head; }
};

inline AttentionShape random_attention(Dice& dice) {
  AttentionShape shape;
  shape.kv_heads = 1 + static_cast<std::int64_t>(dice.below(3));
  shape.heads = shape.kv_heads * (1 + static_cast<std::int64_t>(dice.below(3)));
  shape.head = std::array<std::int64_t, 3>{4, 16, 32}[dice.below(3)];
  shape.layers = 1 + static_cast<std::int32_t>(dice.below(3));
  shape.type = std::array{kF32, kF16, kQ8}[dice.below(3)];
  // Rows narrower than a block of 32 cannot be quantized.
  if (shape.width() % shape.type.block_elements != 0) shape.type = kF16;
  shape.cache_type = dice.one_in(2) ? kF16 : kF32;
  shape.joint = dice.one_in(5);
  shape.low_rank = dice.one_in(4);
  shape.slices = dice.one_in(4);
  shape.transposed = dice.one_in(2);
  shape.states = dice.one_in(3);
  return shape;
}

// A graph that evaluates `tokens` tokens and attends to `window` cells from `first` on. All graphs
// of a shape have the same weights; the parts that ops read are random.
inline GraphTemplate attention_graph(const AttentionShape& shape, Dice& dice, std::int64_t tokens,
                                     std::int64_t first, std::int64_t window) {
  using enum TensorKind;
  GraphMaker m;
  std::uint64_t offset = 64;
  const std::int64_t width = shape.width(), kv_width = shape.kv_width();
  const std::uint64_t of_value = shape.cache_type.block_bytes;
  const std::uint64_t of_cell = of_value * static_cast<std::uint64_t>(kv_width);
  const auto weight = [&](std::int32_t layer, const char* part, Shape dims) {
    const std::string name = "blk." + std::to_string(layer) + "." + part + ".weight";
    const TensorId id = m.weight(
        name.c_str(), dims, *dims.begin() % shape.type.block_elements == 0 ? shape.type : kF16);
    Tensor& t = m.graph.tensors[id.v];
    const std::uint64_t bytes = t.nb[3] * static_cast<std::uint64_t>(t.ne[3]);
    t.file = {.file = layer > 0 ? 1U : 0U, .offset = offset, .length = bytes};
    offset += bytes + 32;
    t.source = Source::Disk;
    t.layer = LayerId{layer};
    t.component = component_of(name, Weight);
    t.role = role_of(name, Weight);
    return id;
  };
  const auto cache = [&](const std::string& name, Shape dims, Role role) {
    const TensorId id = m.leaf(Kv, name.c_str(), dims, shape.cache_type);
    m.graph.tensors[id.v].role = role;
    m.graph.tensors[id.v].component = Component::KvCache;
    return id;
  };
  // A weight, or sometimes a view of some of its rows.
  const auto some_rows = [&](TensorId id) {
    const Tensor& t = m.graph.tensor(id);
    if (!dice.one_in(4)) return id;
    const std::int64_t from =
        static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(t.ne[1])));
    const std::int64_t rows =
        1 + static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(t.ne[1] - from)));
    return m.view(id, (t.name + " (view)").c_str(), {t.ne[0], rows},
                  static_cast<std::uint64_t>(from) * t.nb[1]);
  };
  const auto strided = [&](TensorId id, std::array<std::int64_t, 4> ne,
                           std::array<std::uint64_t, 3> nb) {
    Tensor& t = m.graph.tensors[id.v];
    t.ne = ne;
    for (std::size_t d = 0; d < 3; ++d) t.nb[d] = nb[d];
    t.nb[3] = t.nb[2] * static_cast<std::uint64_t>(t.ne[2]);
    return id;
  };
  const TensorId cells = m.input("k_idxs", {tokens}, kI64);
  const TensorId values = m.input("v_idxs", {tokens * kv_width}, kI64);
  const TensorId mask = m.input("kq_mask", {window, tokens}, kF32);
  TensorId x = m.input("inp", {width, tokens}, kF32);
  for (std::int32_t l = 0; l < shape.layers; ++l) {
    const std::string at = "-" + std::to_string(l);
    const auto product = [&](const char* name, TensorId of, std::int64_t rows) {
      return m.node("MUL_MAT", (name + at).c_str(), {rows, tokens}, {of, x});
    };
    TensorId q, k, v;
    if (shape.joint) {
      const TensorId w = weight(l, "attn_qkv", {width, width + 2 * kv_width});
      q = k = v = product("wqkv", w, width + 2 * kv_width);
    } else {
      if (shape.low_rank) product("q_a", weight(l, "attn_q_a", {width, 8}), 8);
      q = product("Qcur", some_rows(weight(l, "attn_q", {width, width})), width);
      k = product("Kcur", some_rows(weight(l, "attn_k", {width, kv_width})), kv_width);
      v = product("Vcur", some_rows(weight(l, "attn_v", {width, kv_width})), kv_width);
    }
    if (shape.slices) product("k_b", weight(l, "attn_k_b", {shape.head, 8, shape.heads}), 8);

    const TensorId k_cache =
        cache("cache_k_l" + std::to_string(l), {kv_width, AttentionShape::kCells}, Role::K);
    const TensorId v_cache =
        cache("cache_v_l" + std::to_string(l), {kv_width, AttentionShape::kCells}, Role::V);
    const auto all_cells = static_cast<std::uint64_t>(AttentionShape::kCells);
    m.node("SET_ROWS",
           m.view(k_cache, ("k_in" + at).c_str(), {kv_width, AttentionShape::kCells}, 0),
           {k, cells, k_cache});
    TensorId v_in = m.view(v_cache, ("v_in" + at).c_str(), {kv_width, AttentionShape::kCells}, 0);
    if (shape.transposed)
      strided(v_in, {1, kv_width * AttentionShape::kCells, 1, 1},
              {of_value, of_value, of_cell * all_cells});
    m.node("SET_ROWS", v_in, {v, shape.transposed ? values : cells, v_cache});

    // The values of the cells, by head.
    const auto skipped = static_cast<std::uint64_t>(first);
    const std::uint64_t of_head = of_value * static_cast<std::uint64_t>(shape.head);
    const TensorId keys =
        strided(m.view(k_cache, ("k" + at).c_str(), {shape.head, window}, skipped * of_cell),
                {shape.head, window, shape.kv_heads, 1}, {of_value, of_cell, of_head});
    TensorId kept = m.view(v_cache, ("v" + at).c_str(), {shape.head, window},
                           skipped * (shape.transposed ? of_value : of_cell));
    if (shape.transposed) {
      strided(kept, {window, shape.head, shape.kv_heads, 1},
              {of_value, of_value * all_cells, of_head * all_cells});
    } else {
      strided(kept, {shape.head, window, shape.kv_heads, 1}, {of_value, of_cell, of_head});
    }
    const std::uint64_t row_of_q = m.graph.tensor(q).nb[1];
    const TensorId queries = strided(
        m.view(q, ("q" + at).c_str(), {shape.head, tokens}, 0),
        {shape.head, tokens, shape.heads, 1},
        {kF32.block_bytes, row_of_q, kF32.block_bytes * static_cast<std::uint64_t>(shape.head)});
    if (shape.transposed || dice.one_in(2)) {
      const TensorId kq =
          m.node("MUL_MAT", ("kq" + at).c_str(), {window, tokens, shape.heads}, {keys, queries});
      x = m.node("MUL_MAT", ("kqv" + at).c_str(), {width, tokens}, {kept, kq});
    } else {
      x = m.node("FLASH_ATTN_EXT", ("kqv" + at).c_str(), {width, tokens},
                 {queries, keys, kept, mask});
    }
    if (shape.states) {
      const TensorId state = cache("cache_s_l" + std::to_string(l), {width, 2}, Role::State);
      m.node("SCALE", m.view(state, ("state" + at).c_str(), {width, 2}, 0), {state});
    }
    x = product("attn_out", some_rows(weight(l, "attn_output", {width, width})), width);
  }
  m.slot(SlotKind::CachePositions, cells);
  m.slot(SlotKind::CachePositions, values);
  m.slot(SlotKind::AttendedCells, mask);
  for (Tensor& t : m.graph.tensors)
    if (t.kind == Intermediate) t.layer = layer_of(t.name);
  assign_op_layers(m.graph);
  return std::move(m.graph);
}

inline RandomSession attention_session(std::uint64_t seed, std::uint32_t steps = 25) {
  Dice dice(seed);
  const AttentionShape shape = random_attention(dice);
  RandomSession s;
  s.info.id = "attention";
  s.info.state = SessionState::Done;
  s.info.model_files = {{"one.gguf", 1 << 20, 0, ""}, {"two.gguf", 1 << 20, 0, ""}};
  s.info.n_layers = static_cast<std::uint32_t>(shape.layers);
  s.info.n_heads = static_cast<std::uint32_t>(shape.heads);
  s.info.n_heads_kv = static_cast<std::uint32_t>(shape.kv_heads);
  if (dice.one_in(5)) s.info.n_heads = static_cast<std::uint32_t>(dice.below(8));
  if (dice.one_in(5)) s.info.n_heads_kv = static_cast<std::uint32_t>(dice.below(8));
  constexpr std::uint64_t kCells = AttentionShape::kCells;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t first = dice.one_in(3) ? dice.below(8) : 0;
    const std::uint64_t window = 1 + dice.below(kCells - first);
    s.templates.push_back(attention_graph(shape, dice, i == 0 ? 5 : 1,
                                          static_cast<std::int64_t>(first),
                                          static_cast<std::int64_t>(window)));
  }
  // A cell, sometimes out of range.
  const auto cell = [&] {
    return static_cast<std::int64_t>(dice.below(kCells + (dice.one_in(8) ? 4 : 0))) -
           (dice.one_in(30) ? 2 : 0);
  };
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::size_t which = i == 0 ? 0 : dice.below(s.templates.size());
    const GraphTemplate& graph = s.templates[which];
    Step step;
    step.id = StepId{i};
    step.phase = which == 0 ? Phase::Prompt : Phase::Generate;
    step.graph = TemplateId{static_cast<std::uint32_t>(which + 1)};
    step.n_tokens = which == 0 ? 5 : 1;
    step.first_token = i;
    step.op_ends.resize(dice.one_in(10) ? dice.size(graph.ops.size()) : graph.ops.size());
    step.aborted = step.op_ends.size() < graph.ops.size();
    SlotValues cells, values, attended;
    for (std::uint32_t t = 0; t < step.n_tokens; ++t) {
      cells.ints.push_back(cell());
      for (std::int64_t value = 0; value < shape.kv_width(); ++value)
        values.ints.push_back(value * AttentionShape::kCells + cells.ints.back());
    }
    for (std::size_t n = dice.size(kCells); n > 0; --n) attended.ints.push_back(cell());
    if (!dice.one_in(8)) step.slots = {cells, values, attended};
    s.steps.push_back(std::move(step));
  }
  return s;
}

}  // namespace tt::test
