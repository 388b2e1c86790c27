// A decode almost always uses the graph of the previous one: over 2,000 tokens there are only a
// few templates, and the file has few bytes per access.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/traced_model.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

std::filesystem::path tiny_model(const char* shape, int layers) {
  return generated_model({.shape = shape, .dims = {.layers = layers}});
}

struct TemplateCase {
  const char* kind;
  std::filesystem::path model;
  std::uint32_t tokens;
};

TEST(Templates, AreFewForTwoThousandTokens) {
  const TemplateCase cases[] = {
      {"dense", tiny_model("small", 3), 2000},
      {"sliding window", arch_model("gemma3-dense"), 800},
      {"mixture of experts", tiny_model("moe", 2), 2000},
      {"mamba", tiny_model("mamba", 2), 800},
      {"hybrid", arch_model("jamba-dense"), 800},
  };
  for (const TemplateCase& c : cases) {
    SCOPED_TRACE(c.kind);
    ContextOptions context = TracedModel::small_context();
    context.context = 4096;
    TracedModel traced(c.model, context);
    const auto run = traced.run(greedy_tokens(75, c.tokens));  // more than a ubatch
    ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
    ASSERT_EQ(run.result.generated, c.tokens);
    EXPECT_EQ(run.recording.losses, LossCounters{});
    const auto reader = run.reader();
    const auto templates = reader.template_ids();
    ASSERT_TRUE(templates.has_value());
    EXPECT_LE(templates->size(), 12U);

    std::map<Timing, int> timing;
    std::uint64_t accesses = 0;
    std::map<TemplateId, std::vector<Access>> known;
    const auto read = reader.for_each_step(StepId{0}, 1'000'000, [&](const Step& step) {
      ++timing[step.timing];
      const auto graph = reader.graph(step.graph);
      if (!graph) return false;
      const auto [of, fresh] = known.try_emplace(step.graph);
      if (fresh) of->second = accesses_of(**graph);
      accesses += totals_of(**graph, of->second, step).accesses;
      EXPECT_EQ(step.op_ends.size(), (*graph)->ops.size());
      return true;
    });
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(timing[Timing::Exact], 0);
    EXPECT_LE(timing[Timing::Learned], 16) << "graphs are recognized, not learned again";
    const auto size = std::filesystem::file_size(run.file);
    std::printf(
        "%s: %zu templates, %d fast, %d learned, %d without times, %.1fM accesses, "
        "%.2f bytes per access\n",
        c.kind, templates->size(), timing[Timing::Fast], timing[Timing::Learned],
        timing[Timing::None], static_cast<double>(accesses) / 1e6,
        static_cast<double>(size) / static_cast<double>(accesses));
  }
}

// With a realistic model size: in tiny models the cost of a step besides its accesses dominates.
TEST(Templates, SessionOf512TokensUsesAtMostTwoBytesPerAccess) {
  for (const char* shape : {"small", "moe", "gpt-oss-like"}) {
    SCOPED_TRACE(shape);
    ContextOptions context = TracedModel::small_context();
    context.context = 1024;
    TracedModel traced(generated_model({.shape = shape}), context);
    const auto run = traced.run(greedy_tokens(1, 512));
    ASSERT_EQ(run.result.generated, 512U) << run.result.error;
    EXPECT_EQ(run.recording.losses, LossCounters{});
    const auto reader = run.reader();
    std::uint64_t accesses = 0;
    for (const Step& step : run.steps()) {
      const auto graph = graph_of(reader, step);
      ASSERT_EQ(step.op_ends.size(), graph->ops.size());
      // Counts each access individually.
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess&) { ++accesses; });
    }
    const double each =
        static_cast<double>(std::filesystem::file_size(run.file)) / static_cast<double>(accesses);
    std::printf("%s: 512 tokens, %.2fM accesses, %.2f bytes per access\n", shape,
                static_cast<double>(accesses) / 1e6, each);
    EXPECT_LE(each, 2.0);
  }
}

TEST(Templates, FingerprintDependsOnGraphNotProcess) {
  // Two engines allocate the same model at different addresses.
  const auto model = tiny_model("moe", 2);
  std::vector<std::vector<std::uint64_t>> fingerprints;
  std::vector<std::vector<GraphTemplate>> graphs;
  for (int i = 0; i < 2; ++i) {
    TracedModel traced(model);
    const auto run = traced.run(greedy_tokens(20, 300));
    const auto reader = run.reader();
    fingerprints.emplace_back();
    graphs.emplace_back();
    for (const TemplateId id : *reader.template_ids()) {
      graphs.back().push_back(**reader.graph(id));
      fingerprints.back().push_back(graphs.back().back().fingerprint);
    }
  }
  EXPECT_EQ(fingerprints[0], fingerprints[1]);
  EXPECT_EQ(graphs[0], graphs[1]);
}

TEST(Templates, DifferIfGraphsDiffer) {
  const auto model = tiny_model("small", 3);
  TracedModel plain(model);
  ContextOptions context = TracedModel::small_context();
  context.flash_attention = FlashAttention::Off;
  TracedModel without_flash(model, context);
  TracedModel without_repack(model, TracedModel::small_context(), {.repack = false});
  std::set<std::uint64_t> fingerprints;
  std::size_t graphs = 0;
  for (TracedModel* traced : {&plain, &without_flash, &without_repack}) {
    const auto run = traced->run(greedy_tokens(20, 3));
    const auto reader = run.reader();
    for (const TemplateId id : *reader.template_ids()) {
      fingerprints.insert((*reader.graph(id))->fingerprint);
      ++graphs;
    }
  }
  EXPECT_EQ(fingerprints.size(), graphs);
}

}  // namespace
}  // namespace tt::test
