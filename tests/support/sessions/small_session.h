// A session of a model with two layers, small enough to verify by hand:
//
//   op 0  GET_ROWS        embd     layer -  token_embd rows (slot: token ids)
//   op 1  RMS_NORM+MUL    norm-0   layer 0  attn_norm, fused
//   op 2  MUL_MAT         Qcur-0   layer 0  attn_q
//   op 3  MUL_MAT         ffn-1    layer 1  ffn_down
//   op 4  MUL_MAT         logits   layer -  output
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/support/sessions/graph_maker.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"
#include "tracer/format/names/names.h"

namespace tt::test {

inline GraphTemplate small_graph() {
  GraphMaker m;
  const auto weight = [&](const char* name, Shape shape, std::uint64_t offset, std::uint64_t bytes,
                          LayerId layer, Component component, Role role) {
    const TensorId id = m.weight(name, shape);
    Tensor& t = m.graph.tensors[id.v];
    t.source = Source::Disk;
    t.file = {.file = 0, .offset = offset, .length = bytes};
    t.layer = layer;
    t.component = component;
    t.role = role;
    return id;
  };
  const LayerId none = kNoLayer;
  const auto embd_w =
      weight("token_embd.weight", {8, 16}, 1000, 512, none, Component::Embedding, Role::None);
  const auto norm_w =
      weight("blk.0.attn_norm.weight", {8}, 2000, 32, LayerId{0}, Component::Norm, Role::Norm);
  const auto q_w =
      weight("blk.0.attn_q.weight", {8, 8}, 3000, 256, LayerId{0}, Component::Attention, Role::Q);
  const auto down_w =
      weight("blk.1.ffn_down.weight", {8, 8}, 4000, 256, LayerId{1}, Component::Ffn, Role::Down);
  const auto out_w =
      weight("output.weight", {8, 16}, 5000, 512, none, Component::Output, Role::Logits);
  const auto ids = m.input("inp_tokens", {2});

  const auto embd = m.node("GET_ROWS", "embd", {8, 2}, {embd_w, ids});
  m.slot(SlotKind::TokenIds, ids);
  const auto norm = m.node("RMS_NORM", "norm-0", {8, 2}, {embd});
  const auto normed = m.node("MUL", "attn_norm-0", {8, 2}, {norm, norm_w}, true);
  const auto q = m.node("MUL_MAT", "Qcur-0", {8, 2}, {q_w, normed});
  const auto ffn = m.node("MUL_MAT", "ffn_out-1", {8, 2}, {down_w, q});
  m.node("MUL_MAT", "result_output", {16, 2}, {out_w, ffn});
  for (Tensor& t : m.graph.tensors) {
    if (t.kind == TensorKind::Intermediate) t.layer = layer_of(t.name);
  }
  assign_op_layers(m.graph);
  m.graph.ops[0].layer = m.graph.ops[4].layer = none;
  return std::move(m.graph);
}

// Tokens 3 and 5; ops of 10, 20, 30, 40 and 50 ns, from 100 ns on.
inline Step small_step(std::uint32_t id) {
  Step step;
  step.id = StepId{id};
  step.phase = id == 0 ? Phase::Prompt : Phase::Generate;
  step.timing = Timing::Fast;
  step.graph = TemplateId{1};
  step.allocation = AllocationId{1};
  step.begin = Ns{90};
  step.first_op = Ns{100};
  step.op_ends = {Ns{110}, Ns{130}, Ns{160}, Ns{200}, Ns{250}};
  step.end = Ns{260};
  step.n_tokens = 2;
  step.first_token = 2 * id;
  step.slots = {SlotValues{.ints = {3, 5}, .floats = {}}};
  return step;
}

class SmallSession {
 public:
  explicit SmallSession(const std::vector<Step>& steps, SessionInfo info = small_info(),
                        const GraphTemplate& graph = small_graph(),
                        const LossCounters& losses = {.steps_without_times = 1}) {
    path = folder_.path() / "small.ttrace";
    auto writer = SessionWriter::create(path, info);
    EXPECT_TRUE(writer.has_value());
    EXPECT_TRUE((*writer)->add_template(TemplateId{1}, graph).has_value());
    Allocation allocation{.id = AllocationId{1}, .graph = TemplateId{1}, .addresses = {}};
    for (std::size_t i = 0; i < graph.tensors.size(); ++i)
      allocation.addresses.push_back(0x1000 * (i + 1));
    EXPECT_TRUE((*writer)->add_allocation(allocation).has_value());
    EXPECT_TRUE((*writer)
                    ->add_tokens(std::vector<Token>{{.index = 0, .id = 3, .text = "a"},
                                                    {.index = 1, .id = 5, .text = "b"}})
                    .has_value());
    for (const Step& step : steps) EXPECT_TRUE((*writer)->add_step(step).has_value());
    info.state = SessionState::Done;
    EXPECT_TRUE((*writer)->finish(info, losses).has_value());
  }
  static SessionInfo small_info() {
    SessionInfo info;
    info.id = "small";
    info.title = "a b";
    info.n_layers = 2;
    return info;
  }
  SessionReader reader() const {
    auto opened = SessionReader::open(path);
    EXPECT_TRUE(opened.has_value());
    return *std::move(opened);
  }
  std::filesystem::path path;

 private:
  TempFolder folder_;
};

// Writes a session of `count` small steps, one after another.
inline void write_small_steps(const std::filesystem::path& file, const std::string& id,
                              std::uint32_t count) {
  SessionInfo info = SmallSession::small_info();
  info.id = id;
  const GraphTemplate graph = small_graph();
  auto writer = SessionWriter::create(file, info).value();
  ASSERT_TRUE(writer->add_template(TemplateId{1}, graph).has_value());
  Allocation allocation{.id = AllocationId{1}, .graph = TemplateId{1}, .addresses = {}};
  allocation.addresses.resize(graph.tensors.size(), 0x1000);
  ASSERT_TRUE(writer->add_allocation(allocation).has_value());
  for (std::uint32_t i = 0; i < count; ++i) {
    Step step = small_step(i);
    const Ns later{std::int64_t{i} * 1000};
    for (Ns* time : {&step.begin, &step.first_op, &step.end}) *time = Ns{time->v + later.v};
    for (Ns& end : step.op_ends) end = Ns{end.v + later.v};
    ASSERT_TRUE(writer->add_step(step).has_value());
    constexpr std::uint32_t kCommitted = 1024;  // steps of one transaction
    if (i % kCommitted == 0) {
      ASSERT_TRUE(writer->commit().has_value());
    }
  }
  info.state = SessionState::Done;
  ASSERT_TRUE(writer->finish(info, {}).has_value());
}

}  // namespace tt::test
