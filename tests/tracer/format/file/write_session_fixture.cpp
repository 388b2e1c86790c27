// Writes the small session of which tests/data has one copy per released format version:
// write_session_fixture tests/data/session-v8.ttrace
//
// Run once, when a version is final. Never replaces an existing file.
#include <array>
#include <cstdio>
#include <limits>

#include "tracer/format/file/session_writer.h"

namespace {

using namespace tt;

SessionInfo small_info() {
  SessionInfo info;
  info.id = "20260102T030405Z-fixture";
  info.title = "Once upon a time";
  info.start_utc_ns = 1'767'323'045'000'000'000;
  info.level = Level::Verbose;
  info.state = SessionState::Done;
  info.model_files = {
      {"/models/tiny-00001-of-00002.gguf", 40960, 1'767'000'000'000'000'000, "0123456789abcdef"},
      {"/models/tiny-00002-of-00002.gguf", 20480, 1'767'000'000'000'000'001, "fedcba9876543210"}};
  info.n_layers = 1;
  info.n_heads = 4;
  info.n_heads_kv = 2;
  info.n_embd = 64;
  info.n_vocab = 512;
  info.n_experts = 4;
  info.n_experts_used = 2;
  info.facts = {{"model.architecture", "llama"},
                {"request.temperature", "0.8"},
                {"request.stop", ""},
                {"request.stop", "\n\n"}};
  return info;
}

Tensor weight(const char* name, std::int64_t rows, LayerId layer, Component component, Role role,
              FileRange file) {
  Tensor t;
  t.name = name;
  t.type = "Q8_0";
  t.block_elements = 32;
  t.block_bytes = 34;
  t.ne = {64, rows, 1, 1};
  t.nb = {34, 68, 68 * static_cast<std::uint64_t>(rows), 68 * static_cast<std::uint64_t>(rows)};
  t.buffer = "CPU_Mapped";
  t.kind = TensorKind::Weight;
  t.source = Source::Disk;
  t.layer = layer;
  t.component = component;
  t.role = role;
  t.file = file;
  return t;
}

Tensor plain(const char* name, const char* type, std::array<std::int64_t, 4> ne, TensorKind kind) {
  Tensor t;
  t.name = name;
  t.type = type;
  t.ne = ne;
  t.nb[0] = 4;
  for (std::size_t i = 1; i < 4; ++i) t.nb[i] = t.nb[i - 1] * static_cast<std::uint64_t>(ne[i - 1]);
  t.buffer = "CPU";
  t.kind = kind;
  t.source = kind == TensorKind::Input ? Source::Input : Source::Compute;
  return t;
}

// Token embedding, router, one expert matrix, and a view: one of each kind.
GraphTemplate small_graph(std::int64_t n_tokens) {
  GraphTemplate graph;
  graph.fingerprint = 0xFEEDFACE00000000u + static_cast<std::uint64_t>(n_tokens);
  graph.tensors = {
      weight("token_embd.weight", 512, kNoLayer, Component::Embedding, Role::None,
             {0, 4096, 34816}),
      plain("inp_tokens", "I32", {n_tokens, 1, 1, 1}, TensorKind::Input),
      plain("inp_embd", "F32", {64, n_tokens, 1, 1}, TensorKind::Intermediate),
      weight("blk.0.ffn_gate_inp.weight", 4, LayerId{0}, Component::Moe, Role::Router,
             {0, 38912, 272}),
      plain("ffn_moe_topk-0", "I32", {2, n_tokens, 1, 1}, TensorKind::Intermediate),
      weight("blk.0.ffn_up_exps.weight", 32, LayerId{0}, Component::Moe, Role::Up, {1, 4096, 8704}),
      plain("ffn_moe_up-0", "F32", {32, 2, n_tokens, 1}, TensorKind::Intermediate),
      plain("ffn_moe_up-0 (view)", "F32", {32, 1, n_tokens, 1}, TensorKind::Intermediate),
  };
  graph.tensors[1].input = InputLabel::TokenIds;
  graph.tensors[1].component = Component::Input;
  graph.tensors[5].ne[2] = 4;  // experts
  graph.tensors[5].nb[3] *= 4;
  for (const std::size_t i : {4u, 6u, 7u}) {
    graph.tensors[i].layer = LayerId{0};
    graph.tensors[i].component = Component::Moe;
  }
  graph.tensors[7].view_of = TensorId{6};
  graph.tensors[7].view_offset = 128;
  graph.nodes = {
      {TensorId{2}, "GET_ROWS", {TensorId{0}, TensorId{1}}, {}, true},
      {TensorId{4}, "TOP_K", {TensorId{2}, kNoTensor, TensorId{3}}, {2, -1}, true},
      {TensorId{6}, "MUL_MAT_ID", {TensorId{5}, TensorId{2}, TensorId{4}}, {}, true},
      {TensorId{7}, "VIEW", {TensorId{6}}, {128}, false},
  };
  graph.ops = {{NodeId{0}, 1, "CPU", LayerId{0}},
               {NodeId{1}, 1, "CPU", LayerId{0}},
               {NodeId{2}, 2, "CPU", LayerId{0}}};
  graph.slots = {{SlotKind::TokenIds, TensorId{1}, OpId{0}, kNoLayer},
                 {SlotKind::Experts, TensorId{4}, OpId{1}, LayerId{0}},
                 {SlotKind::ExpertScores, TensorId{4}, OpId{1}, LayerId{0}}};
  return graph;
}

Step small_step(std::uint32_t id, Phase phase, std::uint32_t graph, Ns begin) {
  Step s;
  s.id = StepId{id};
  s.phase = phase;
  s.timing = Timing::Fast;
  s.graph = TemplateId{graph};
  s.allocation = AllocationId{graph};
  s.begin = begin;
  s.first_op = begin + Ns{500};
  s.op_ends = {begin + Ns{2'000}, begin + Ns{130'000}, begin + Ns{3'000'000}};
  s.end = begin + Ns{3'100'000};
  s.n_tokens = 1;
  s.threads = 2;
  return s;
}

std::expected<void, TraceError> write_fixture(const char* path) {
  const SessionInfo info = small_info();
  SessionInfo begun = info;
  begun.state = SessionState::Running;
  auto created = SessionWriter::create(path, begun);
  if (!created) return std::unexpected(created.error());
  SessionWriter& writer = **created;

  const Token tokens[] = {{0, 1, 0, false, false, ""},
                          {1, 40, 1, false, true, "Once", 1},
                          {2, 41, 2, false, false, " upon", 1},
                          {3, 42, 3, true, false, " \xC3", 1},
                          {4, 43, 4, true, false, "\xA4", 1, Draft::Accepted},
                          {5, 2, 5, true, false, "", 2, Draft::Rejected}};
  Step steps[] = {small_step(0, Phase::Prompt, 1, Ns{1'000}),
                  small_step(1, Phase::Generate, 2, Ns{4'000'000}),
                  small_step(2, Phase::Generate, 2, Ns{8'000'000}),
                  small_step(3, Phase::Other, 0, Ns{12'000'000})};
  steps[0].n_tokens = 3;
  steps[0].timing = Timing::Learned;
  steps[0].slots = {
      {{1, 40, 41}, {}}, {{0, 3, 1, 2, 3, 0}, {}}, {{}, {0.75f, 0.25f, 0.5f, 0.5f, 1.0f, 0.0f}}};
  steps[0].stats = {{OpId{2}, -1.5f, 2.5f, 0.125f, 0.5f, 1, 2}};
  steps[0].conditions = {.interval_ns = 3'101'000,
                         .cpu_ns = 5'000'000,
                         .cpu_wait_ns = 200'000,
                         .voluntary_switches = 12,
                         .involuntary_switches = 3,
                         .minor_faults = 40,
                         .major_faults = 3,
                         .disk_read_bytes = 131'072,
                         .throttled_ns = 0,
                         .pressure_cpu_ns = 150'000,
                         .pressure_io_ns = 90'000,
                         .pressure_memory_ns = 0,
                         .queue_ns = 2'000'000,
                         .sample_ns = 0,
                         .detokenize_ns = 700,
                         .build_ns = 400,
                         .evaluate_ns = 3'000'000,
                         .graphs_built = 1,
                         .frequency_khz = 2'400'000,
                         .thermal_throttles = 2,
                         .memory_limit_bytes = 8'000'000'000,
                         .locked_bytes = 4096,
                         .resident_bytes = 8192};
  steps[1].conditions.interval_ns = 3'999'000;  // the system provides little
  steps[1].conditions.major_faults = 0;
  steps[1].conditions.sample_ns = 30'000;
  steps[1].conditions.graphs_built = 0;
  steps[1].first_token = 3;
  steps[1].slots = {{{42}, {}}, {{3, 1}, {}}, {{}, {0.625f, 0.375f}}};
  steps[2].first_token = 4;  // cancelled after its first op
  steps[2].op_ends.resize(1);
  steps[2].aborted = true;
  steps[3].first_token = 5;  // no free buffer
  steps[3].allocation = {};
  steps[3].timing = Timing::None;
  steps[3].first_op = {};
  steps[3].op_ends.clear();
  steps[3].dropped = true;

  const Allocation allocations[] = {
      {AllocationId{1}, TemplateId{1}, {0x7000, 0x100, 0x200, 0x8000, 0x300, 0x9000, 0x400, 0x480}},
      {AllocationId{2},
       TemplateId{2},
       {0x7000, 0x100, 0x180, 0x8000, 0x200, 0x9000, 0x300,
        std::numeric_limits<std::uint64_t>::max()}}};

  std::expected<void, TraceError> done = writer.add_template(TemplateId{1}, small_graph(3));
  if (done) done = writer.add_template(TemplateId{2}, small_graph(1));
  for (const Allocation& a : allocations)
    if (done) done = writer.add_allocation(a);
  if (done) done = writer.add_tokens(tokens);
  for (const Step& s : steps)
    if (done) done = writer.add_step(s);
  // In the experts, in the embedding, on the stack; the last step's faults are only counted.
  if (done)
    done = writer.add_faults(
        {.step = StepId{0},
         .count = 3,
         .faults = {{Ns{2'500}, 0x9000 + 2176}, {Ns{2'600}, 0x7044}, {Ns{3'000'000}, 0x7fff'0000}}},
        steps[0].begin);
  if (done) done = writer.add_faults({.step = StepId{2}, .count = 7, .faults = {}}, steps[2].begin);
  // In the output of the first op.
  if (done)
    done = writer.add_faults({.step = StepId{1}, .count = 1, .faults = {{Ns{4'001'000}, 0x180}}},
                             steps[1].begin, FaultKind::Minor);
  StepResidency residency;
  residency.step = StepId{1};
  residency.at = Ns{3'900'000};
  residency.unit = 64;
  residency.resident = {{.file = 0, .offset = 64, .length = 128},
                        {.file = 0, .offset = 4096, .length = 2176}};
  if (done) done = writer.add_residency(residency);
  const StepValues values[] = {
      {.step = StepId{0},
       .not_captured = 3,
       .outputs = {{.op = OpId{0}, .ne = {2, 3, 1, 1}, .values = {1, -2, 0.5f, 0, 1e-30f, 3e30f}},
                   {.op = OpId{2}, .ne = {1, 1, 1, 1}, .values = {0.25f}}}},
      {.step = StepId{1}, .not_captured = 1, .outputs = {}}};
  for (const StepValues& of : values)
    if (done) done = writer.add_values(of);
  const StepSplits splits{
      .step = StepId{1},
      .backends = {"CPU", "CUDA0"},
      .splits = {
          {.backend = 0, .first = OpId{0}, .ops = 1, .begin = Ns{4'000'100}, .end = Ns{4'000'200}},
          {.backend = 1,
           .first = OpId{1},
           .ops = 2,
           .begin = Ns{4'000'400},
           .end = Ns{4'000'450},
           .done = Ns{4'000'900},
           .copies = {{.tensor = TensorId{1},
                       .from = 0,
                       .bytes = 128,
                       .begin = Ns{4'000'210},
                       .end = Ns{4'000'390},
                       .wait = Ns{20},
                       .complete = true}}}}};
  if (done) done = writer.add_splits(splits, steps[1].begin);
  if (done) done = writer.commit();
  if (done) done = writer.finish(info, {1, 2, 3, 0, 4});
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_session_fixture FILE\n");
    return 2;
  }
  if (const auto done = write_fixture(argv[1]); !done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
