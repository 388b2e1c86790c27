// The source of weights depends on how the model was loaded. Their file ranges are found in
// every case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tracer/engine/host_facts.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

modelgen::ModelSpec spec_of(const char* shape) { return {.shape = shape}; }

struct WeightSources {
  std::map<Source, int> sources;             // weights by their source
  std::set<std::uint32_t> files;             // that contain them
  std::map<std::string, FileRange> by_name;  // whole tensors
  OffsetCoverage coverage;
  std::vector<Token> tokens;
};

// Runs a prompt and decodes, and collects every weight of every graph.
WeightSources weight_sources(TracedModel& traced) {
  WeightSources places;
  const auto run = traced.run(greedy_tokens(70, 4));
  EXPECT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  EXPECT_EQ(run.recording.losses, LossCounters{});
  EXPECT_TRUE(check_session(run.file).value().empty());
  for (const Step& step : run.steps()) {
    const auto graph = graph_of(run.reader(), step);
    for (const Tensor& tensor : graph->tensors) {
      if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor) continue;
      if (!places.by_name.emplace(tensor.name, tensor.file).second) continue;
      ++places.sources[tensor.source];
      places.files.insert(tensor.file.file);
      const GgufTensor* in_file = traced.engine().gguf().find(tensor.name);
      EXPECT_NE(in_file, nullptr) << tensor.name;
      if (in_file != nullptr) {
        EXPECT_EQ(tensor.file, in_file->file) << tensor.name;
        EXPECT_EQ(tensor.ne, in_file->ne) << tensor.name;
      }
    }
  }
  places.coverage = traced.engine().probe().coverage();
  EXPECT_EQ(places.coverage.by_name, places.coverage.weights);
  EXPECT_EQ(places.coverage.agree, places.coverage.by_address);
  places.tokens = run.captured.tokens;
  return places;
}

TEST(WeightPlaces, WithoutRepackingAllAreInMappedFile) {
  TracedModel traced(generated_model(spec_of("small")), TracedModel::small_context(),
                     {.repack = false});
  const WeightSources places = weight_sources(traced);
  const auto all = static_cast<int>(traced.engine().gguf().tensors().size());
  EXPECT_EQ(places.sources, (std::map<Source, int>{{Source::Disk, all}}));
  EXPECT_EQ(places.coverage.by_address, places.coverage.weights);
}

TEST(WeightPlaces, RepackedAreInMemoryWithFileRange) {
  TracedModel traced(generated_model(spec_of("small")));
  const WeightSources places = weight_sources(traced);
  int known = 0;
  for (const auto& [source, count] : places.sources) {
    EXPECT_TRUE(source == Source::Disk || source == Source::Repacked) << to_text(source);
    known += count;
  }
  EXPECT_EQ(known, static_cast<int>(traced.engine().gguf().tensors().size()));
  EXPECT_GT(places.sources.at(Source::Disk), 0);
}

TEST(WeightPlaces, WithoutMmapAreInPlainMemory) {
  TracedModel traced(generated_model(spec_of("small")), TracedModel::small_context(),
                     {.mmap = false, .repack = false});
  const WeightSources places = weight_sources(traced);
  EXPECT_EQ(places.sources.size(), 1U);
  EXPECT_TRUE(places.sources.contains(Source::Buffer));
  EXPECT_EQ(places.coverage.by_address, 0U);
  // Recorded as a fact of the session, so that a memory read is not mistaken for a disk read.
  TracedModel mapped(generated_model(spec_of("small")));
  EXPECT_EQ(places.tokens, weight_sources(mapped).tokens);
}

TEST(WeightPlaces, WithMlockAreLockedInMemory) {
  const auto model = kTestPaths.bundled_model;  // within the usual RLIMIT_MEMLOCK
  for (const bool mmap : {true, false}) {
    SCOPED_TRACE(mmap ? "mapped" : "read");
    ASSERT_EQ(locked_bytes(), 0U);
    {
      TracedModel loose(model, TracedModel::small_context(), {.mmap = mmap, .repack = false});
      EXPECT_EQ(locked_bytes(), 0U);
    }
    TracedModel locked(model, TracedModel::small_context(),
                       {.mmap = mmap, .mlock = true, .repack = false});
    std::uint64_t weights = 0;
    for (const GgufTensor& tensor : locked.engine().gguf().tensors()) weights += tensor.file.length;
    EXPECT_GT(weights, 100'000U);
    EXPECT_GE(locked_bytes(), weights);
    EXPECT_EQ(weight_sources(locked).tokens.size(), 74U);
  }
}

TEST(WeightPlaces, OfSplitModelsHaveTheirFile) {
  modelgen::ModelSpec spec = spec_of("small");
  const auto whole = generated_model(spec);
  spec.splits = 3;
  TracedModel traced(generated_model(spec), TracedModel::small_context(), {.repack = false});
  const WeightSources places = weight_sources(traced);
  EXPECT_EQ(places.files, (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(places.coverage.by_address, places.coverage.weights) << "also found by address";
  TracedModel one(whole, TracedModel::small_context(), {.repack = false});
  EXPECT_EQ(places.tokens, weight_sources(one).tokens);
}

TEST(WeightPlaces, TiedEmbeddingIsReadTwice) {
  modelgen::ModelSpec spec = spec_of("small");
  spec.tied = true;
  TracedModel traced(generated_model(spec));
  const auto run = traced.run(greedy_tokens(9, 3));
  const Step decode = run.steps().at(2);
  const auto graph = graph_of(run.reader(), decode);
  const FileRange file = traced.engine().gguf().find("token_embd.weight")->file;
  EXPECT_EQ(traced.engine().gguf().find("output.weight"), nullptr);
  std::map<std::string, std::uint64_t> bytes;  // by op
  for_each_access(*graph, accesses_of(*graph), decode, [&](const StepAccess& access) {
    if (graph->tensor(access.tensor).kind != TensorKind::Weight) return;
    if (access.range.offset < file.offset || access.range.offset >= file.offset + file.length) {
      return;
    }
    bytes[graph->node(graph->op(access.op).last()).op] += access.touched.v;
  });
  EXPECT_EQ(bytes, (std::map<std::string, std::uint64_t>{{"GET_ROWS", file.length / 4096},
                                                         {"MUL_MAT", file.length}}));
}

// ---------------------------------------------------------------- caches

TEST(CachePlaces, FlashAttentionReadsAttendedCellsOtherwiseWholeWindow) {
  const auto model = generated_model(spec_of("small"));
  std::map<FlashAttention, std::uint64_t> read;
  for (const FlashAttention attention : {FlashAttention::On, FlashAttention::Off}) {
    ContextOptions context = TracedModel::small_context();
    context.flash_attention = attention;
    TracedModel traced(model, context);
    const auto run = traced.run(greedy_tokens(20, 3));
    const Step decode = run.steps().at(2);
    EXPECT_EQ(decode.timing, Timing::Fast);
    const auto graph = graph_of(run.reader(), decode);
    bool flash = false;
    for (const Node& node : graph->nodes) flash = flash || node.op == "FLASH_ATTN_EXT";
    EXPECT_EQ(flash, attention == FlashAttention::On);
    for_each_access(*graph, accesses_of(*graph), decode, [&](const StepAccess& access) {
      if (graph->tensor(access.tensor).kind != TensorKind::Kv || access.write) return;
      read[attention] += access.touched.v;
    });
  }
  // 12 layers, K and V of 4 heads of 32 f16 values; 22 cells attended to, 256 in the padded
  // window.
  EXPECT_EQ(read[FlashAttention::On], 12U * 2 * 4 * 32 * 2 * 22);
  EXPECT_EQ(read[FlashAttention::Off], 12U * 2 * 4 * 32 * 2 * 256);
}

TEST(CachePlaces, TracesQuantizedCache) {
  modelgen::ModelSpec spec = spec_of("small");
  ContextOptions context = TracedModel::small_context();
  context.cache_type_k = context.cache_type_v = "q8_0";
  TracedModel traced(generated_model(spec), context);
  const auto run = traced.run(greedy_tokens(20, 3));
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  const Step decode = run.steps().at(2);
  const auto graph = graph_of(run.reader(), decode);
  std::uint64_t read = 0, written = 0;
  for_each_access(*graph, accesses_of(*graph), decode, [&](const StepAccess& access) {
    const Tensor& tensor = graph->tensor(access.tensor);
    if (tensor.kind != TensorKind::Kv) return;
    EXPECT_EQ(tensor.type, "q8_0");
    (access.write ? written : read) += access.touched.v;
  });
  // 34 bytes for 32 elements.
  EXPECT_EQ(read, 12U * 2 * 4 * 34 * 22);
  EXPECT_EQ(written, 12U * 2 * 4 * 34);
}

}  // namespace
}  // namespace tt::test
