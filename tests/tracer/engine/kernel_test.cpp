// Which kernel ran an op: the rule against results of ggml's CPU backend, of which those of
// different kernels differ in their last bits, and in recorded sessions.
#include "analysis/common/kernel.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "analysis/common/op_info.h"
#include "tests/support/models/traced_model.h"
#include "tracer/engine/host_facts.h"

namespace tt::test {
namespace {

constexpr std::int64_t kColumns = 256;

SessionInfo this_machine() {
  SessionInfo info;
  info.facts = host_facts("/");
  return info;
}

// The product of random rows of `type` and of `tokens` times the same column: of the first.
std::vector<float> product(ggml_type type, std::int64_t rows, std::int64_t tokens) {
  const ggml_backend_ptr cpu(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
  const ggml_context_ptr context(
      ggml_init({.mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(),
                 .mem_buffer = nullptr,
                 .no_alloc = true}));
  ggml_tensor* matrix = ggml_new_tensor_2d(context.get(), type, kColumns, rows);
  ggml_tensor* column = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kColumns, tokens);
  ggml_tensor* result = ggml_mul_mat(context.get(), matrix, column);
  const ggml_backend_buffer_ptr memory(ggml_backend_alloc_ctx_tensors(context.get(), cpu.get()));

  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(rows * kColumns));
  for (float& value : values) value = normal(random);
  std::vector<std::uint8_t> converted(ggml_nbytes(matrix));
  ggml_quantize_chunk(type, values.data(), converted.data(), 0, rows, kColumns, nullptr);
  ggml_backend_tensor_set(matrix, converted.data(), 0, converted.size());
  std::vector<float> one(kColumns);
  for (float& value : one) value = normal(random);
  for (std::int64_t i = 0; i < tokens; ++i)
    ggml_backend_tensor_set(column, one.data(), static_cast<std::size_t>(i) * column->nb[1],
                            column->nb[1]);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, result);
  EXPECT_EQ(ggml_backend_graph_compute(cpu.get(), graph), GGML_STATUS_SUCCESS);
  std::vector<float> first(static_cast<std::size_t>(rows));
  ggml_backend_tensor_get(result, first.data(), 0, first.size() * sizeof(float));
  return first;
}

// The same product as a graph with one op.
std::optional<Kernel> kernel_of_product(ggml_type type, std::int64_t rows, std::int64_t tokens) {
  const auto tensor = [](ggml_type of, std::int64_t ne1) {
    Tensor made;
    made.type = ggml_type_name(of);
    made.block_elements = static_cast<std::uint32_t>(ggml_blck_size(of));
    made.block_bytes = static_cast<std::uint32_t>(ggml_type_size(of));
    made.ne = {kColumns, ne1, 1, 1};
    const std::uint64_t row = ggml_row_size(of, kColumns);
    made.nb = {made.block_bytes, row, row * static_cast<std::uint64_t>(ne1),
               row * static_cast<std::uint64_t>(ne1)};
    made.buffer = "CPU";
    return made;
  };
  GraphTemplate graph;
  graph.tensors = {tensor(type, rows), tensor(GGML_TYPE_F32, tokens),
                   tensor(GGML_TYPE_F32, tokens)};
  Node node;
  node.op = "MUL_MAT";
  node.src = {TensorId{0}, TensorId{1}};
  node.output = TensorId{2};
  graph.nodes = {node};
  graph.ops = {Op{.first = NodeId{0}, .nodes = 1, .device = "CPU", .layer = kNoLayer}};
  return kernel_of(graph, graph.ops[0], kernel_rules_of(this_machine()));
}

TEST(Kernels, AnotherKernelGivesOtherBits) {
  ensure_backends_loaded();
  struct Case {
    ggml_type type;
    std::int64_t rows;
    bool sums_differ;  // llamafile adds in another order than the plain kernel
  };
  for (const Case& of : {Case{GGML_TYPE_F32, 64, true}, Case{GGML_TYPE_F16, 64, true},
                         Case{GGML_TYPE_F32, 62, false}, Case{GGML_TYPE_Q4_K, 64, false},
                         Case{GGML_TYPE_Q6_K, 64, false}}) {
    SCOPED_TRACE(std::string(ggml_type_name(of.type)) + " " + std::to_string(of.rows));
    const auto one = kernel_of_product(of.type, of.rows, 1);
    const auto two = kernel_of_product(of.type, of.rows, 2);
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one, Kernel::Plain) << "one token";
    if (kernel_rules_of(this_machine()).llamafile == true) {
      EXPECT_EQ(two, of.sums_differ ? Kernel::Llamafile : Kernel::Plain);
    }
    EXPECT_EQ(product(of.type, of.rows, 1) == product(of.type, of.rows, 2), one == two);
  }
}

// The kernels of the multiplications by weights, by phase.
std::map<Phase, std::set<std::optional<Kernel>>> kernels_of_weights(const char* quant,
                                                                    bool repack) {
  ModelOptions options;
  options.repack = repack;
  TracedModel model(generated_model({.shape = "small", .dims = {.layers = 2}, .quant = quant}),
                    TracedModel::small_context(), options);
  const auto run = model.run(greedy_tokens(32, 4));
  const SessionReader reader = run.reader();
  const KernelRules rules = kernel_rules_of(reader.info().value());
  std::map<Phase, std::set<std::optional<Kernel>>> found;
  for (const Step& step : run.steps()) {
    const auto graph = graph_of(reader, step);
    for (const Op& op : graph->ops) {
      const Node& node = graph->node(op.first);
      if (node.op != "MUL_MAT" || graph->tensor(node.src[0]).kind != TensorKind::Weight) continue;
      // Only for the last token of a prompt.
      if (graph->tensor(node.output).role == Role::Logits) continue;
      const auto kernel = kernel_of(*graph, op, rules);
      const bool converted = graph->tensor(node.src[0]).source == Source::Repacked;
      EXPECT_EQ(converted, kernel == Kernel::Repacked || kernel == Kernel::Amx);
      found[step.phase].insert(kernel);
    }
  }
  return found;
}

TEST(Kernels, OfRecordedSessions) {
  ensure_backends_loaded();
  const auto llamafile = kernel_rules_of(this_machine()).llamafile;
  ASSERT_TRUE(llamafile.has_value());
  const std::optional<Kernel> prompt = *llamafile ? Kernel::Llamafile : Kernel::Plain;
  using Kernels = std::set<std::optional<Kernel>>;
  auto plain = kernels_of_weights("F16", /*repack=*/false);
  EXPECT_EQ(plain[Phase::Prompt], (Kernels{prompt}));
  EXPECT_EQ(plain[Phase::Generate], (Kernels{Kernel::Plain}));
  auto mixed = kernels_of_weights("Q4_K_M", /*repack=*/false);
  EXPECT_EQ(mixed[Phase::Prompt], (Kernels{Kernel::Plain})) << "no kernel of llamafile";
  auto repacked = kernels_of_weights("Q4_0", /*repack=*/true);
  for (const Phase phase : {Phase::Prompt, Phase::Generate}) {
    EXPECT_EQ(repacked[phase].size(), 1U);
    EXPECT_TRUE(repacked[phase].contains(Kernel::Repacked) ||
                repacked[phase].contains(Kernel::Amx));
  }
}

}  // namespace
}  // namespace tt::test
