// Random sessions of every shape from a seed, the same on every machine. For property tests of
// code that reads or writes sessions. They are valid (indices are within their lists), but not
// plausible.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/lens_values.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt::test {

// The results of std distributions depend on the library; these do not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : engine_() % n; }
  std::size_t size(std::size_t up_to) { return static_cast<std::size_t>(below(up_to + 1)); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // All magnitudes are equally likely: small numbers and extremes.
  std::uint64_t any_u64() { return bits() >> below(64); }
  std::int64_t any_i64() {
    const auto v = static_cast<std::int64_t>(any_u64());
    return one_in(2) ? v : ~v;
  }
  std::uint32_t any_u32() { return static_cast<std::uint32_t>(any_u64()); }
  std::int32_t any_i32() { return static_cast<std::int32_t>(any_i64()); }
  float any_float() { return static_cast<float>(any_i64()) * 1e-9f; }
  std::string text(std::size_t up_to) {  // any bytes, zero included
    std::string s(size(up_to), '\0');
    for (char& c : s) c = static_cast<char>(one_in(8) ? below(256) : 'a' + below(26));
    return s;
  }
  template <class Enum>
  Enum word(Enum last) {
    return static_cast<Enum>(below(static_cast<std::uint64_t>(last) + 1));
  }

 private:
  std::mt19937_64 engine_;
};

struct RandomShape {
  std::size_t templates = 3, tensors = 30, nodes = 20, slots = 4, steps = 20, tokens = 30;
};

struct RandomSession {
  SessionInfo info;
  LossCounters losses;
  std::vector<GraphTemplate> templates;  // ids 1, 2, ...
  std::vector<Allocation> allocations;
  std::vector<Token> tokens;
  std::vector<Step> steps;
  std::vector<StepFaults> faults, minor_faults;  // only some of the steps
  std::vector<StepResidency> residency;          // only some of the steps
  std::vector<StepValues> values;                // only some of the steps
  std::vector<StepSplits> splits;                // only some of the steps
  friend bool operator==(const RandomSession&, const RandomSession&) = default;
};

inline GraphTemplate random_template(Dice& dice, const RandomShape& shape) {
  GraphTemplate graph;
  graph.fingerprint = dice.bits();
  const std::size_t n_tensors = 1 + dice.size(shape.tensors);
  const auto tensor = [&] { return TensorId{static_cast<std::uint32_t>(dice.below(n_tensors))}; };
  for (std::size_t i = 0; i < n_tensors; ++i) {
    Tensor t;
    t.name = dice.text(40);
    t.type = dice.text(6);
    t.block_elements = dice.any_u32();
    t.block_bytes = dice.any_u32();
    for (auto& ne : t.ne) ne = dice.any_i64();
    for (auto& nb : t.nb) nb = dice.any_u64();
    if (dice.one_in(3)) t.view_of = tensor();
    t.view_offset = dice.any_u64();
    t.buffer = dice.text(12);
    t.kind = dice.word(TensorKind::Input);
    t.source = dice.word(Source::Buffer);
    t.component = dice.word(Component::Input);
    t.role = dice.word(Role::Logits);
    t.input = dice.word(InputLabel::Other);
    t.layer = LayerId{dice.any_i32()};
    t.file = {dice.any_u32(), dice.any_u64(), dice.any_u64()};
    graph.tensors.push_back(std::move(t));
  }
  const std::size_t n_nodes = dice.size(shape.nodes);
  for (std::size_t i = 0; i < n_nodes; ++i) {
    Node n;
    n.output = tensor();
    n.op = dice.text(12);
    for (std::size_t k = dice.size(6); k > 0; --k)
      n.src.push_back(dice.one_in(4) ? kNoTensor : tensor());
    for (std::size_t k = dice.size(n.params.size()); k > 0; --k) n.params[k - 1] = dice.any_i32();
    n.computed = dice.one_in(2);
    graph.nodes.push_back(std::move(n));
  }
  for (std::size_t at = 0; at < n_nodes;) {
    Op op;
    op.first = NodeId{static_cast<std::uint32_t>(at)};
    op.nodes = static_cast<std::uint32_t>(1 + dice.below(std::min<std::size_t>(2, n_nodes - at)));
    op.device = dice.text(5);
    op.layer = LayerId{dice.any_i32()};
    at += op.nodes;
    graph.ops.push_back(std::move(op));
  }
  for (std::size_t i = graph.ops.empty() ? 0 : dice.size(shape.slots); i > 0; --i) {
    Slot s{};
    s.kind = dice.word(SlotKind::AttendedCells);
    s.tensor = tensor();
    s.read_at = OpId{static_cast<std::uint32_t>(dice.below(graph.ops.size()))};
    s.layer = LayerId{dice.any_i32()};
    graph.slots.push_back(s);
  }
  return graph;
}

// A random step of `graph`. The caller sets id, template, allocation and tokens.
inline Step random_step(Dice& dice, const GraphTemplate& graph) {
  Step step;
  step.phase = dice.word(Phase::Other);
  step.timing = dice.word(Timing::None);
  step.begin = Ns{dice.any_i64()};
  step.end = Ns{dice.any_i64()};
  step.first_op = Ns{dice.any_i64()};
  step.threads = dice.any_u32();
  step.dropped = dice.one_in(5);
  step.aborted = dice.one_in(5);
  if (!dice.one_in(4))
    for (const StepCondition& of : kStepConditions)
      if (!dice.one_in(4)) step.conditions.*of.value = dice.any_u64();
  step.op_ends.resize(dice.one_in(5) ? dice.size(graph.ops.size()) : graph.ops.size());
  Ns end = step.first_op;
  for (Ns& op_end : step.op_ends)
    op_end = end = dice.one_in(50) ? Ns{dice.any_i64()} : Ns{end.v / 2 + dice.any_u32()};
  if (!dice.one_in(4)) step.slots.resize(graph.slots.size());
  for (SlotValues& slot : step.slots) {
    std::int64_t value = dice.any_i64();
    for (std::size_t k = dice.size(20); k > 0; --k) {
      value = dice.one_in(10) ? dice.any_i64() : value / 2 + 1;
      for (std::size_t run = dice.one_in(3) ? dice.size(9) : 1; run > 0; --run)
        slot.ints.push_back(value / 4 + static_cast<std::int64_t>(run));
    }
    for (std::size_t k = dice.size(8); k > 0; --k) slot.floats.push_back(dice.any_float());
  }
  for (std::size_t k = graph.ops.empty() ? 0 : dice.size(3); k > 0; --k)
    step.stats.push_back({OpId{static_cast<std::uint32_t>(dice.below(graph.ops.size()))},
                          dice.any_float(), dice.any_float(), dice.any_float(), dice.any_float(),
                          dice.any_u64(), dice.any_u64()});
  return step;
}

inline StepFaults random_faults(Dice& dice, StepId step) {
  StepFaults of{.step = step, .count = 1 + dice.below(5), .faults = {}};
  if (dice.one_in(5)) return of;  // only counted
  for (std::uint64_t i = 0; i < of.count; ++i)
    of.faults.push_back({.at = Ns{dice.any_i64()}, .address = dice.any_u64()});
  return of;
}

inline StepResidency random_residency(Dice& dice, StepId step) {
  StepResidency of;
  of.step = step;
  of.at = Ns{dice.any_i64()};
  of.unit = dice.any_u64();
  for (std::size_t i = dice.size(9); i > 0; --i)
    of.resident.push_back({.file = static_cast<std::uint32_t>(dice.below(1ULL << 32)),
                           .offset = dice.any_u64(),
                           .length = dice.any_u64()});
  return of;
}

// Of a step whose template has `ops` ops.
inline StepValues random_values(Dice& dice, StepId step, std::size_t ops) {
  StepValues of{.step = step, .not_captured = dice.any_u64(), .outputs = {}};
  for (std::size_t op = dice.size(3); op < ops; op += 1 + dice.size(5)) {
    OutputValues output{.op = OpId{static_cast<std::uint32_t>(op)}, .ne = {}, .values = {}};
    std::uint64_t n = 1;
    for (std::uint64_t& ne : output.ne) n *= ne = dice.one_in(20) ? 0 : 1 + dice.below(4);
    for (; n > 0; --n) output.values.push_back(dice.any_float());
    const bool all = dice.one_in(8);  // else at most two
    for (const ValuesOf kind : {ValuesOf::Output, ValuesOf::Attention, kLensValues}) {
      if (!all && !dice.one_in(2)) continue;
      output.of = kind;
      of.outputs.push_back(output);
    }
  }
  return of;
}

// Of a step whose template has so many ops and tensors.
inline StepSplits random_splits(Dice& dice, StepId step, std::size_t ops, std::size_t tensors) {
  StepSplits of{.step = step, .backends = {}, .splits = {}};
  const std::size_t backends = 1 + dice.size(3);
  for (std::size_t i = 0; i < backends; ++i) of.backends.push_back(dice.text(20));
  const auto backend = [&] { return static_cast<std::uint32_t>(dice.below(backends)); };
  const auto time = [&] { return Ns{dice.any_i64()}; };
  for (std::size_t i = dice.size(4); i > 0; --i) {
    BackendSplit split{.backend = backend(),
                       .first = OpId{static_cast<std::uint32_t>(dice.size(ops))},
                       .begin = time(),
                       .end = time()};
    split.ops = static_cast<std::uint32_t>(dice.size(ops - split.first.v));
    if (dice.one_in(2)) split.done = time();
    for (std::size_t k = dice.size(4); k > 0; --k)
      split.copies.push_back(
          {.tensor = tensors == 0 || dice.one_in(4)
                         ? kNoTensor
                         : TensorId{static_cast<std::uint32_t>(dice.below(tensors))},
           .from = dice.one_in(4) ? kNone : backend(),
           .bytes = dice.any_u64(),
           .begin = time(),
           .end = time(),
           .wait = time(),
           .complete = dice.one_in(2)});
    of.splits.push_back(std::move(split));
  }
  return of;
}

inline RandomSession random_session(std::uint64_t seed, const RandomShape& shape = {}) {
  Dice dice(seed);
  RandomSession s;
  s.info.id = "session-" + std::to_string(seed);
  s.info.title = dice.text(60);
  s.info.start_utc_ns = dice.any_i64();
  s.info.level = dice.word(Level::Verbose);
  s.info.exact_timing = dice.one_in(2);
  s.info.state = SessionState::Done;
  s.info.error = dice.text(30);
  for (std::size_t i = dice.size(3); i > 0; --i)
    s.info.model_files.push_back({dice.text(40), dice.any_u64(), dice.any_i64(), dice.text(16)});
  for (auto* n : {&s.info.n_layers, &s.info.n_heads, &s.info.n_heads_kv, &s.info.n_embd,
                  &s.info.n_vocab, &s.info.n_experts, &s.info.n_experts_used})
    *n = dice.any_u32() % 65'537;  // the largest number of layers and heads
  for (std::size_t i = dice.size(20); i > 0; --i)
    s.info.facts.emplace_back(dice.text(20), dice.text(100));
  s.losses = {dice.any_u64(), dice.any_u64(), dice.any_u64(), dice.any_u64()};

  for (std::size_t i = 0; i < shape.templates; ++i) {
    s.templates.push_back(random_template(dice, shape));
    for (std::size_t k = 1 + dice.size(1); k > 0; --k) {
      Allocation a;
      a.id = AllocationId{static_cast<std::uint32_t>(s.allocations.size() + 1)};
      a.graph = TemplateId{static_cast<std::uint32_t>(i + 1)};
      for (std::size_t t = 0; t < s.templates.back().tensors.size(); ++t)
        a.addresses.push_back(dice.any_u64());
      s.allocations.push_back(std::move(a));
    }
  }
  for (std::size_t i = 0; i < shape.tokens; ++i)
    s.tokens.push_back({static_cast<std::uint32_t>(i), dice.any_i32(), dice.any_i32(),
                        dice.one_in(2), dice.one_in(2), dice.text(8),
                        dice.one_in(2) ? std::optional(dice.any_u32()) : std::nullopt,
                        static_cast<Draft>(dice.below(4))});
  for (std::size_t i = 0; i < shape.steps; ++i) {
    Step step;
    if (!s.allocations.empty() && !dice.one_in(10)) {
      const Allocation& a = s.allocations[dice.below(s.allocations.size())];
      step = random_step(dice, s.templates[a.graph.v - 1]);
      step.graph = a.graph;
      step.allocation = a.id;
    }
    step.id = StepId{static_cast<std::uint32_t>(i)};
    step.first_token = static_cast<std::uint32_t>(dice.size(shape.tokens));
    step.n_tokens = static_cast<std::uint32_t>(dice.size(shape.tokens - step.first_token));
    s.steps.push_back(std::move(step));
  }
  s.losses.page_faults_lost = dice.any_u64();
  for (const Step& step : s.steps)
    if (dice.one_in(3)) s.faults.push_back(random_faults(dice, step.id));
  for (const Step& step : s.steps)
    if (dice.one_in(3)) s.minor_faults.push_back(random_faults(dice, step.id));
  for (const Step& step : s.steps)
    if (dice.one_in(3)) s.residency.push_back(random_residency(dice, step.id));
  for (const Step& step : s.steps) {
    const std::size_t ops = step.graph.v == 0 ? 0 : s.templates[step.graph.v - 1].ops.size();
    if (dice.one_in(3)) s.values.push_back(random_values(dice, step.id, ops));
  }
  for (const Step& step : s.steps) {
    const GraphTemplate none, &graph = step.graph.v == 0 ? none : s.templates[step.graph.v - 1];
    if (dice.one_in(3))
      s.splits.push_back(random_splits(dice, step.id, graph.ops.size(), graph.tensors.size()));
  }
  return s;
}

// Adds the templates, allocations, tokens and steps of `s` and commits. Does not finish.
inline std::expected<void, TraceError> add_all(SessionWriter& writer, const RandomSession& s) {
  std::expected<void, TraceError> done;
  for (std::size_t i = 0; done && i < s.templates.size(); ++i)
    done = writer.add_template(TemplateId{static_cast<std::uint32_t>(i + 1)}, s.templates[i]);
  for (std::size_t i = 0; done && i < s.allocations.size(); ++i)
    done = writer.add_allocation(s.allocations[i]);
  if (done) done = writer.add_tokens(s.tokens);
  auto faults = s.faults.begin(), minor_faults = s.minor_faults.begin();
  auto residency = s.residency.begin();
  auto values = s.values.begin();
  auto splits = s.splits.begin();
  for (std::size_t i = 0; done && i < s.steps.size(); ++i) {
    done = writer.add_step(s.steps[i]);
    if (done && faults != s.faults.end() && faults->step.v == i)
      done = writer.add_faults(*faults++, s.steps[i].begin);
    if (done && minor_faults != s.minor_faults.end() && minor_faults->step.v == i)
      done = writer.add_faults(*minor_faults++, s.steps[i].begin, FaultKind::Minor);
    if (done && residency != s.residency.end() && residency->step.v == i)
      done = writer.add_residency(*residency++);
    if (done && values != s.values.end() && values->step.v == i)
      done = writer.add_values(*values++);
    if (done && splits != s.splits.end() && splits->step.v == i)
      done = writer.add_splits(*splits++, s.steps[i].begin);
  }
  if (done) done = writer.commit();
  return done;
}

// Writes `s` as a finished file.
inline std::expected<void, TraceError> write_session(const std::filesystem::path& path,
                                                     const RandomSession& s) {
  auto writer = SessionWriter::create(path, s.info);
  if (!writer) return std::unexpected(writer.error());
  return add_all(**writer, s).and_then([&] { return (*writer)->finish(s.info, s.losses); });
}

// Reads the whole content of a file; returns the first error.
inline std::expected<RandomSession, TraceError> read_session(const std::filesystem::path& path) {
  auto reader = SessionReader::open(path);
  if (!reader) return std::unexpected(reader.error());
  RandomSession s;
  const auto info = reader->info();
  if (!info) return std::unexpected(info.error());
  s.info = *info;
  const auto losses = reader->losses();
  if (!losses) return std::unexpected(losses.error());
  s.losses = *losses;
  const auto ids = reader->template_ids();
  if (!ids) return std::unexpected(ids.error());
  for (const TemplateId id : *ids) {
    const auto graph = reader->graph(id);
    if (!graph) return std::unexpected(graph.error());
    s.templates.push_back(**graph);
  }
  for (AllocationId id{1};; ++id.v) {
    const auto allocation = reader->allocation(id);
    if (!allocation && allocation.error().kind == TraceError::Kind::NotFound) break;
    if (!allocation) return std::unexpected(allocation.error());
    s.allocations.push_back(*allocation);
  }
  const auto tokens = reader->tokens(0, UINT32_MAX);
  if (!tokens) return std::unexpected(tokens.error());
  s.tokens = *tokens;
  const auto steps = reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    s.steps.push_back(step);
    return true;
  });
  if (!steps) return std::unexpected(steps.error());
  for (const auto& [kind, list] :
       {std::pair{FaultKind::Major, &s.faults}, std::pair{FaultKind::Minor, &s.minor_faults}}) {
    const auto faults = reader->for_each_faults(
        StepId{0}, UINT32_MAX,
        [&](const StepFaults& of) {
          list->push_back(of);
          return true;
        },
        kind);
    if (!faults) return std::unexpected(faults.error());
  }
  const auto residency =
      reader->for_each_residency(StepId{0}, UINT32_MAX, [&](const StepResidency& of) {
        s.residency.push_back(of);
        return true;
      });
  if (!residency) return std::unexpected(residency.error());
  const auto values = reader->for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    s.values.push_back(of);
    return true;
  });
  if (!values) return std::unexpected(values.error());
  const auto splits = reader->for_each_splits(StepId{0}, UINT32_MAX, [&](const StepSplits& of) {
    s.splits.push_back(of);
    return true;
  });
  if (!splits) return std::unexpected(splits.error());
  return s;
}

}  // namespace tt::test
