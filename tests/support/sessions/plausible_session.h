// Random sessions, from a seed, that a real model could have produced: a few layers with
// weights in files, an embedding, caches, some with experts; steps of a template that changes
// often, prompts of many tokens, steps that were cancelled, that lack times or lists, or that
// have no template. For property tests of aggregates over steps.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/tables/tensor_table.h"
#include "tests/support/sessions/graph_maker.h"
#include "tests/support/sessions/random_session.h"
#include "tracer/format/names/names.h"

namespace tt::test {

struct PlausibleGraph {
  std::int64_t tokens = 1, cells = 16, experts = 0, used = 2;
  std::uint32_t layers = 2;
  Source weights = Source::Disk;
};

inline GraphTemplate plausible_graph(const PlausibleGraph& shape) {
  constexpr std::int64_t kWide = 8, kVocab = 40, kHeads = 4;
  GraphMaker m;
  std::uint64_t offset = 100;
  const auto weight = [&](const std::string& name, Shape dims, LayerId layer, Component component) {
    const TensorId id = m.weight(name.c_str(), dims);
    Tensor& t = m.graph.tensors[id.v];
    std::uint64_t bytes = t.block_bytes;
    for (const std::int64_t n : t.ne) bytes *= static_cast<std::uint64_t>(n);
    t.source = shape.weights;
    t.buffer = shape.weights == Source::Disk ? "CPU_Mapped" : "CPU_REPACK";
    t.file = {.file = layer.v > 0 ? 1U : 0U, .offset = offset, .length = bytes};
    offset += bytes + (offset % 3 == 0 ? 700 : 32);
    t.layer = layer;
    t.component = component;
    return id;
  };
  const auto made = [&](TensorId id, Component component = Component::Other) {
    Tensor& t = m.graph.tensors[id.v];
    t.layer = layer_of(t.name);
    t.component = component;
    t.buffer = "CPU";
    return id;
  };
  const std::int64_t n = shape.tokens;
  const auto embedding =
      weight("token_embd.weight", {kWide, kVocab}, kNoLayer, Component::Embedding);
  const auto ids = m.input("inp_tokens", {n});
  const auto positions = m.input("inp_pos", {n});
  const auto mask = m.input("kq_mask", {shape.cells, n}, kF32);
  auto x = made(m.node("GET_ROWS", "embd", {kWide, n}, {embedding, ids}), Component::Embedding);
  m.slot(SlotKind::TokenIds, ids);
  for (std::uint32_t l = 0; l < shape.layers; ++l) {
    const LayerId layer{static_cast<std::int32_t>(l)};
    const std::string blk = "blk." + std::to_string(l) + ".", at = "-" + std::to_string(l);
    const auto norm_w = weight(blk + "attn_norm.weight", {kWide}, layer, Component::Norm);
    const auto q_w = weight(blk + "attn_q.weight", {kWide, kWide}, layer, Component::Attention);
    const auto cache =
        m.leaf(TensorKind::Kv, ("cache_k_l" + std::to_string(l)).c_str(), {kWide, 64});
    m.graph.tensors[cache.v].source = Source::Kv;
    m.graph.tensors[cache.v].buffer = "KV";
    m.graph.tensors[cache.v].layer = layer;
    m.graph.tensors[cache.v].component = Component::KvCache;
    m.graph.tensors[cache.v].role = Role::K;
    m.graph.tensors[q_w.v].role = Role::Q;
    const auto norm = made(m.node("RMS_NORM", ("norm" + at).c_str(), {kWide, n}, {x}));
    const auto normed =
        made(m.node("MUL", ("attn_norm" + at).c_str(), {kWide, n}, {norm, norm_w}, true));
    const auto q = made(m.node("MUL_MAT", ("Qcur" + at).c_str(), {kWide, n}, {q_w, normed}),
                        Component::Attention);
    const auto written =
        m.view(cache, (m.graph.tensor(cache).name + " (view)").c_str(), {kWide, 64}, 0);
    m.node("SET_ROWS", written, {q, positions, cache});
    if (l == 0) m.slot(SlotKind::CachePositions, positions);
    const auto keys =
        m.view(cache, (m.graph.tensor(cache).name + " (view)").c_str(), {kWide, shape.cells}, 0);
    const auto queries =
        m.view(q, (m.graph.tensor(q).name + " (view)").c_str(), {kWide / kHeads, n, kHeads}, 0);
    const auto attended = made(
        m.node("FLASH_ATTN_EXT", ("kqv_out" + at).c_str(), {kWide, n}, {queries, keys, keys, mask}),
        Component::Attention);
    if (l == 0) m.slot(SlotKind::AttendedCells, mask);
    x = made(m.node("ADD", ("ffn_inp" + at).c_str(), {kWide, n}, {attended, x}));
    if (shape.experts > 0) {
      const auto topk = m.input(("ffn_moe_topk" + at).c_str(), {shape.used, n});
      const auto up =
          weight(blk + "ffn_up_exps.weight", {kWide, kWide, shape.experts}, layer, Component::Moe);
      const auto out = made(
          m.node("MUL_MAT_ID", ("ffn_moe_up" + at).c_str(), {kWide, shape.used, n}, {up, x, topk}),
          Component::Moe);
      m.slot(SlotKind::Experts, topk, layer);
      x = made(m.node("SUM_ROWS", ("ffn_out" + at).c_str(), {kWide, n}, {out}));
    }
  }
  const auto head = weight("output.weight", {kWide, kVocab}, kNoLayer, Component::Output);
  made(m.node("MUL_MAT", "result_output", {kVocab, n}, {head, x}), Component::Output);
  assign_op_layers(m.graph);
  return std::move(m.graph);
}

// Most addresses are within tensors of the step; some are around their ends, or elsewhere.
inline StepFaults plausible_faults(Dice& dice, const RandomSession& s, const Step& step) {
  StepFaults of{.step = step.id, .count = 1 + dice.below(6), .faults = {}};
  if (dice.one_in(6)) return of;
  for (std::uint64_t i = 0; i < of.count; ++i) {
    const auto length = static_cast<std::uint64_t>(step.end.v - step.begin.v);
    PageFault fault{.at = Ns{step.begin.v + static_cast<std::int64_t>(dice.below(length + 2))},
                    .address = dice.below(0x40000)};
    if (step.graph.v != 0 && !dice.one_in(8)) {
      const GraphTemplate& graph = s.templates[step.graph.v - 1];
      const std::size_t tensor = dice.below(graph.tensors.size());
      fault.address = s.allocations[step.allocation.v - 1].addresses[tensor] +
                      dice.below(size_of(graph.tensors[tensor]).v);
    }
    of.faults.push_back(fault);
  }
  std::ranges::stable_sort(of.faults, {}, [](const PageFault& f) { return f.at.v; });
  return of;
}

// Parts of the weights, of 64 bytes and more, in order.
// One split after the other, of all ops, on two backends.
inline StepSplits plausible_splits(Dice& dice, const RandomSession& s, const Step& step) {
  const GraphTemplate none, &graph = step.graph.v == 0 ? none : s.templates[step.graph.v - 1];
  StepSplits of{.step = step.id, .backends = {"CPU", "GPU0"}, .splits = {}};
  Ns now = step.begin;
  const auto next = [&] { return now = Ns{now.v + static_cast<std::int64_t>(dice.below(9))}; };
  const auto ops = static_cast<std::uint32_t>(graph.ops.size());
  for (std::uint32_t first = 0, i = 0; first <= ops; ++i) {
    BackendSplit split{.backend = i % 2, .first = OpId{first}};
    split.ops = first == ops ? 0 : 1 + static_cast<std::uint32_t>(dice.below(ops - first));
    first += split.ops + (split.ops == 0 ? 1 : 0);
    for (std::size_t k = dice.size(3); k > 0; --k) {
      BackendCopy copy{.from = 1 - split.backend, .bytes = dice.below(1000), .complete = true};
      if (!graph.tensors.empty() && dice.one_in(2))
        copy.tensor = TensorId{static_cast<std::uint32_t>(dice.below(graph.tensors.size()))};
      copy.begin = next();
      copy.end = next();
      copy.wait = Ns{static_cast<std::int64_t>(
          dice.below(static_cast<std::uint64_t>(copy.end.v - copy.begin.v) + 1))};
      split.copies.push_back(copy);
    }
    split.begin = next();
    split.end = next();
    if (dice.one_in(2)) split.done = next();
    of.splits.push_back(std::move(split));
  }
  return of;
}

inline StepResidency plausible_residency(Dice& dice, const RandomSession& s, const Step& step) {
  constexpr std::uint64_t kUnit = 64;
  std::map<std::uint32_t, std::uint64_t> ends;  // of the files
  for (const GraphTemplate& graph : s.templates)
    for (const Tensor& tensor : graph.tensors)
      if (!tensor.file.empty())
        ends[tensor.file.file] =
            std::max(ends[tensor.file.file], tensor.file.offset + tensor.file.length);
  StepResidency of;
  of.step = step.id;
  of.at = step.begin;
  of.unit = kUnit;
  for (const auto& [file, end] : ends)
    for (std::uint64_t at = dice.below(8) * kUnit; at < end && of.resident.size() < 1000;) {
      const std::uint64_t length = (1 + dice.below(40)) * kUnit;
      of.resident.push_back({.file = file, .offset = at, .length = length});
      at += length + (1 + dice.below(40)) * kUnit;
    }
  return of;
}

inline RandomSession plausible_session(std::uint64_t seed, std::size_t steps = 60) {
  Dice dice(seed);
  RandomSession s;
  s.info.id = "plausible";
  s.info.state = SessionState::Done;
  s.info.n_layers = 3;
  s.info.model_files = {{"a/one.gguf", 20000, 0, ""}, {"a/two.gguf", 20000, 0, ""}};
  // No experts; as many as fit one word of a bit set; several words; too many for a bit set.
  const std::int64_t experts = std::array{0, 6, 70, 600}[dice.below(4)];
  const std::size_t kinds = 1 + dice.size(4);
  const auto weights = dice.one_in(3) ? Source::Repacked : Source::Disk;
  for (std::size_t i = 0; i < kinds; ++i) {
    s.templates.push_back(plausible_graph({.tokens = i % 2 == 0 ? 1 : 7,
                                           .cells = dice.one_in(2) ? 16 : 32,
                                           .experts = experts,
                                           .layers = 1 + static_cast<std::uint32_t>(dice.size(2)),
                                           .weights = weights}));
    for (std::size_t k = 0; k < 1 + dice.size(1); ++k) {
      Allocation a{.id = AllocationId{static_cast<std::uint32_t>(s.allocations.size() + 1)},
                   .graph = TemplateId{static_cast<std::uint32_t>(i + 1)},
                   .addresses = {}};
      std::uint64_t at = 0x10000 + 0x40 * dice.below(8);
      std::vector<std::uint64_t> roots;
      for (const Tensor& t : s.templates.back().tensors) {
        const std::uint64_t base = t.view_of == kNoTensor ? at : a.addresses[t.view_of.v];
        a.addresses.push_back(base + t.view_offset);
        at += 0x1000 * (1 + size_of(t).v / 0x1000);
      }
      s.allocations.push_back(std::move(a));
    }
  }
  const bool restless = dice.one_in(2);
  Ns now{1000};
  std::uint32_t tokens = 0;
  std::size_t which = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    if (restless || dice.one_in(8)) which = dice.below(s.allocations.size());
    const Allocation& a = s.allocations[which];
    const GraphTemplate& graph = s.templates[a.graph.v - 1];
    const auto n = static_cast<std::uint32_t>(graph.tensors[1].ne[0]);
    Step step{.id = StepId{static_cast<std::uint32_t>(i)},
              .phase = n > 1             ? Phase::Prompt
                       : dice.one_in(20) ? Phase::Other
                                         : Phase::Generate,
              .timing = Timing::Fast,
              .graph = a.graph,
              .allocation = a.id,
              .begin = now,
              .first_op = Ns{now.v + static_cast<std::int64_t>(dice.below(20))},
              .op_ends = {},
              .n_tokens = n,
              .first_token = tokens,
              .threads = 1,
              .conditions = {},
              .slots = {},
              .stats = {}};
    Ns end = step.first_op;
    for (std::size_t op = 0; op < graph.ops.size(); ++op)
      step.op_ends.push_back(end = Ns{end.v + static_cast<std::int64_t>(dice.below(30))});
    for (const Slot& slot : graph.slots) {
      SlotValues values;
      for (std::uint32_t t = 0; t < n; ++t) {
        if (slot.kind == SlotKind::TokenIds)
          values.ints.push_back(static_cast<std::int64_t>(dice.below(40)));
        if (slot.kind == SlotKind::CachePositions) values.ints.push_back((tokens + t) % 64);
        for (int k = 0; slot.kind == SlotKind::Experts && k < 2; ++k)
          values.ints.push_back(
              static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(experts))));
      }
      for (std::int64_t c = 0; slot.kind == SlotKind::AttendedCells && c < 1 + tokens % 40; ++c)
        if (seed % 3 != 0 || c % 5 != 3) values.ints.push_back(c);
      step.slots.push_back(std::move(values));
    }
    if (dice.one_in(15)) {  // cancelled
      step.op_ends.resize(dice.size(step.op_ends.size()));
      step.aborted = true;
    }
    if (dice.one_in(15)) {  // its times were dropped
      step.op_ends.clear();
      step.timing = Timing::None;
      step.dropped = true;
    }
    if (dice.one_in(10)) step.slots.clear();
    if (dice.one_in(20)) {
      step.graph = TemplateId{};
      step.allocation = AllocationId{};
      step.op_ends.clear();
      step.slots.clear();
    }
    if (dice.one_in(25)) step.n_tokens = 0;
    now = step.end =
        Ns{std::max(end.v, step.first_op.v) + static_cast<std::int64_t>(dice.below(9))};
    now.v += static_cast<std::int64_t>(dice.below(5));
    tokens += step.n_tokens;
    s.steps.push_back(std::move(step));
  }
  for (std::uint32_t t = 0; t < tokens; ++t) s.tokens.push_back({.index = t, .id = 1, .text = ""});
  for (const Step& step : s.steps) {
    if (dice.one_in(3)) s.faults.push_back(plausible_faults(dice, s, step));
    if (dice.one_in(4)) s.minor_faults.push_back(plausible_faults(dice, s, step));
    if (dice.one_in(4)) s.residency.push_back(plausible_residency(dice, s, step));
    if (dice.one_in(4)) s.splits.push_back(plausible_splits(dice, s, step));
  }
  return s;
}

// No recorder writes this, but another program can: in some steps an op ends before it begins.
inline RandomSession with_decreasing_times(RandomSession session, std::uint64_t seed) {
  Dice dice(seed);
  for (Step& step : session.steps)
    if (step.op_ends.size() > 1 && dice.one_in(3)) {
      const std::size_t op = dice.below(step.op_ends.size() - 1);
      std::swap(step.op_ends[op], step.op_ends[op + 1]);
    }
  return session;
}

}  // namespace tt::test
