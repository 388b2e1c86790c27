// The check of a recording against the hyper-parameters of its model: it passes for models of each
// kind, and fails for a session from which the op of a layer was removed, although that session is
// consistent in itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/report/layer_work.h"
#include "analysis/report/validation.h"
#include "tests/support/models/traced_model.h"
#include "tracer/format/file/session_writer.h"

namespace tt::test {
namespace {

CheckResult hyper_parameters(const std::filesystem::path& session,
                             std::vector<std::string>* others = nullptr) {
  const auto validation = validate(session);
  EXPECT_TRUE(validation.has_value()) << validation.error().message;
  if (!validation) return {};
  for (const CheckResult& check : validation->checks)
    if (others != nullptr && check.status == CheckStatus::Failed &&
        check.check != Check::HyperParameters)
      others->emplace_back(to_text(check.check));
  return *std::ranges::find(validation->checks, Check::HyperParameters, &CheckResult::check);
}

// The op of this layer whose output has this name, or the first of this type, in the template and
// in all steps.
struct Removed {
  std::int32_t layer;
  std::string_view output;
};

std::uint32_t op_of(const GraphTemplate& graph, const Removed& removed) {
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.layer.v != removed.layer) continue;
    const Node& last = graph.node(op.last());
    if (last.op == removed.output ||
        graph.tensor(last.output).name ==
            std::string(removed.output) + "-" + std::to_string(removed.layer))
      return i;
  }
  return kNone;
}

// A copy of the session without the op.
void write_without(const SessionReader& reader, const Removed& removed,
                   const std::filesystem::path& out) {
  const SessionInfo info = *reader.info();
  const auto writer = SessionWriter::create(out, info);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  for (const TemplateId id : *reader.template_ids()) {
    GraphTemplate graph = **reader.graph(id);
    const std::uint32_t op = op_of(graph, removed);
    ASSERT_NE(op, kNone) << removed.output;
    graph.ops.erase(graph.ops.begin() + op);
    for (Slot& slot : graph.slots)
      if (slot.read_at.v > op) --slot.read_at.v;
    ASSERT_TRUE((*writer)->add_template(id, graph).has_value());
  }
  ASSERT_TRUE((*writer)->add_tokens(*reader.tokens(0, *reader.token_count())).has_value());
  std::uint32_t allocations = 0;
  const auto read = reader.for_each_step(StepId{0}, ~0U, [&](const Step& whole) {
    Step step = whole;
    for (; allocations < step.allocation.v; ++allocations)
      EXPECT_TRUE(
          (*writer)->add_allocation(*reader.allocation(AllocationId{allocations + 1})).has_value());
    step.op_ends.erase(step.op_ends.begin() + op_of(**reader.graph(step.graph), removed));
    EXPECT_TRUE((*writer)->add_step(step).has_value());
    return true;
  });
  ASSERT_TRUE(read.has_value());
  ASSERT_TRUE((*writer)->finish(info, {}).has_value());
}

struct Model {
  const char* shape;
  bool derived;  // the work of a layer follows from its metadata
  std::vector<const char*> ops;
};

class HyperParameters : public ::testing::TestWithParam<Model> {};

TEST_P(HyperParameters, AreMetByARecordingAndNotWithoutAnOp) {
  const Model& model = GetParam();
  for (const FlashAttention flash : {FlashAttention::On, FlashAttention::Off}) {
    ContextOptions context = TracedModel::small_context();
    context.flash_attention = flash;
    TracedModel traced(two_layer_model(model.shape), context);
    const auto run = traced.run(greedy_tokens(75, 4));  // more than a ubatch
    ASSERT_NE(run.result.reason, StopReason::Error) << run.result.error;
    std::vector<std::string> others;
    const CheckResult met = hyper_parameters(run.file, &others);
    EXPECT_EQ(met.status, CheckStatus::Passed)
        << (met.evidence.empty() ? met.summary : met.evidence.front());
    EXPECT_EQ(others, std::vector<std::string>{});
    EXPECT_EQ(met.items_checked, 2 * run.steps().size());
    EXPECT_EQ(expected_layer_work(run.info).has_value(), model.derived) << met.summary;
    std::printf("%s: %s\n", model.shape, met.summary.c_str());

    const TempFolder folder;
    for (const char* output : model.ops) {
      SCOPED_TRACE(output);
      if (std::string_view(output) == "__fattn__" && flash == FlashAttention::Off) continue;
      const auto damaged = folder.path() / (std::string(output) + ".ttrace");
      write_without(run.reader(), {.layer = 1, .output = output}, damaged);
      if (HasFatalFailure()) return;
      const CheckResult missed = hyper_parameters(damaged, &others);
      EXPECT_EQ(missed.status, CheckStatus::Failed);
      EXPECT_EQ(missed.wrong, run.steps().size()) << "layer 1 of each step";
      EXPECT_TRUE(missed.evidence.at(0).contains("layer 1")) << missed.evidence.at(0);
      EXPECT_EQ(others, std::vector<std::string>{}) << "the session is consistent in itself";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HyperParameters,
                         ::testing::Values(Model{"small", true, {"Qcur", "ffn_out"}},
                                           Model{"moe", true, {"ffn_moe_logits", "ffn_moe_down"}},
                                           Model{"qwen3-moe-like", true, {"Kcur", "ffn_moe_up"}},
                                           Model{"gpt-oss-like", true, {"ffn_moe_gate"}},
                                           Model{"mamba", true, {"MUL_MAT", "SSM_SCAN"}},
                                           Model{"deepseek-like", false, {}},
                                           Model{"rwkv", false, {}}),
                         [](const auto& model) {
                           std::string name = model.param.shape;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tt::test
