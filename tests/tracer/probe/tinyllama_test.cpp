// The question that started this project: a hook inside ggml's matrix multiplication saw only
// 21 of TinyLlama's 155 matrices. One decode must contain all of them, the norms and one row of
// the embedding. The test also checks what the 21 matrices have in common.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "tests/support/models/traced_model.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

TEST(TinyLlama, DecodeTouchesEveryWeightAndOneEmbeddingRow) {
  TracedModel traced(generated_model({.shape = "tinyllama-1.1b"}));
  const auto run = traced.run(greedy_tokens(5, 2));
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  const auto steps = run.steps();
  ASSERT_EQ(steps.size(), 2U);
  const Step& decode = steps[1];
  ASSERT_EQ(decode.phase, Phase::Generate);
  const auto graph = graph_of(run.reader(), decode);

  std::map<std::string, const Tensor*> matrices;  // read by a matrix multiplication
  std::set<std::string> layer_matrices, norms;
  std::uint64_t footprint = 0, rows = 0;
  const auto accesses = accesses_of(*graph);
  for_each_access(*graph, accesses, decode, [&](const StepAccess& access) {
    const Tensor& tensor = graph->tensor(access.tensor);
    if (tensor.kind != TensorKind::Weight) return;
    EXPECT_FALSE(access.write);
    footprint += access.touched.v;
    const std::string& op = graph->node(graph->op(access.op).last()).op;
    if (op == "MUL_MAT") {
      matrices.emplace(tensor.name, &tensor);
      if (tensor.layer != kNoLayer) layer_matrices.insert(tensor.name);
    } else if (op == "MUL") {
      norms.insert(tensor.name);
    } else {
      ASSERT_EQ(op, "GET_ROWS");
      ASSERT_EQ(tensor.name, "token_embd.weight");
      ++rows;
      // The row of the token that was most likely after the prompt.
      const Access& row = accesses[access.access];
      ASSERT_EQ(graph->slot(row.slot).kind, SlotKind::TokenIds);
      const auto& ids = decode.slots[row.slot.v].ints;
      ASSERT_EQ(ids.size(), 1U);
      EXPECT_EQ(ids[0], run.captured.tokens[5].id);
      const GgufTensor* in_file = traced.engine().gguf().find(tensor.name);
      ASSERT_NE(in_file, nullptr);
      const std::uint64_t row_bytes = in_file->file.length / 32000;
      EXPECT_EQ(access.touched.v, row_bytes);
      EXPECT_EQ(access.range, (FileRange{.file = 0,
                                         .offset = in_file->file.offset +
                                                   static_cast<std::uint64_t>(ids[0]) * row_bytes,
                                         .length = row_bytes}));
    }
  });
  EXPECT_EQ(layer_matrices.size(), 22U * 7);
  EXPECT_EQ(matrices.size(), 22U * 7 + 1);
  EXPECT_TRUE(matrices.contains("output.weight"));
  EXPECT_EQ(norms.size(), 45U);
  EXPECT_EQ(rows, 1U);

  // Every byte of the file's weights once; of the embedding, one row.
  std::uint64_t expected = 0;
  for (const GgufTensor& tensor : traced.engine().gguf().tensors()) {
    expected += tensor.name == "token_embd.weight" ? tensor.file.length / 32000  //
                                                   : tensor.file.length;
  }
  EXPECT_EQ(footprint, expected);

  // The matrices that the hook saw: the promoted tensors, whose type has no faster kernel.
  std::set<std::string> hook = {"output.weight"};
  for (const int layer : {0, 1, 4, 7, 8, 9, 12, 15, 18, 20}) {
    hook.insert("blk." + std::to_string(layer) + ".attn_v.weight");
    hook.insert("blk." + std::to_string(layer) + ".ffn_down.weight");
  }
  std::set<std::string> q6;
  std::map<std::string, std::map<std::string, int>> sources;  // type -> source -> matrices
  for (const auto& [name, tensor] : matrices) {
    if (tensor->type == "q6_K") q6.insert(name);
    ++sources[tensor->type][to_text(tensor->source)];
  }
  EXPECT_EQ(hook, q6);
  EXPECT_EQ(hook.size(), 21U);
  std::printf("%zu matrices, %zu norms, 1 row; %.1f MB read by a decode\n", matrices.size(),
              norms.size(), static_cast<double>(footprint) / 1e6);
  for (const auto& [type, by_source] : sources) {
    for (const auto& [source, count] : by_source) {
      std::printf("  %s: %d from %s\n", type.c_str(), count, source.c_str());
    }
  }
}

}  // namespace
}  // namespace tt::test
