// What does recording cost the inference thread per op? Budget: 40 ns.
//
// One iteration is one step of a known graph of 379 ops in 691 nodes (a decode of
// the tinyllama shape), as llama.cpp drives it: every node listed, every op
// ticked, the buffer handed back. No kernel runs between the callbacks, so caches are warmer than
// in a real step; token_bench has the real one.
#include <benchmark/benchmark.h>
#include <ggml.h>
#include <llama.h>

#include <cstdlib>
#include <vector>

#include "tracer/llama_handles.h"
#include "tracer/probe.h"
#include "tracer/step_pool.h"

namespace {

constexpr int kOps = 379;
constexpr int kNodes = 691;

struct Graph {
  tt::GgmlContext context;
  std::vector<ggml_tensor*> nodes;

  Graph() : context(ggml_init({.mem_size = 4U << 20, .mem_buffer = nullptr, .no_alloc = true})) {
    ggml_tensor* at = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 64, 1);
    for (int i = 0; i < kOps; ++i) {
      if (i < kNodes - kOps) {
        at = ggml_reshape_1d(context.get(), at, 64);
        nodes.push_back(at);
      }
      at = ggml_scale(context.get(), at, 1.5F);
      at->flags |= GGML_TENSOR_FLAG_COMPUTE;
      nodes.push_back(at);
    }
  }
};

void BM_RecordOneOp(benchmark::State& state) {
  const Graph graph;
  const tt::GgufIndex index;
  const tt::ModelLayout layout{index, {}};
  tt::Probe probe(layout);
  tt::StepPool pool(2, 4096, 1U << 16);
  llama_context_params params = llama_context_default_params();
  probe.attach(params);

  const auto step = [&](bool learn) {
    tt::StepBuffer* buffer = pool.try_acquire();
    probe.begin_step(buffer, {.exact = false, .stats_of = nullptr, .epoch = {}});
    for (ggml_tensor* node : graph.nodes) {
      const bool cut = params.cb_eval(node, true, params.cb_eval_user_data);
      if (cut) {
        params.abort_callback(params.abort_callback_data);
        params.cb_eval(node, false, params.cb_eval_user_data);
      }
    }
    if (!learn) {
      for (int i = 0; i < kOps; ++i) params.abort_callback(params.abort_callback_data);
    }
    probe.end_step(false);
    if (!learn && (buffer->header.timing != tt::Timing::Fast || buffer->count_mismatch)) {
      state.SkipWithError("the graph was not recognised");
    }
    pool.release(buffer);
  };
  step(true);
  for (auto _ : state) step(false);
  state.counters["ns/op"] = benchmark::Counter(
      kOps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetItemsProcessed(state.iterations() * kOps);
}
BENCHMARK(BM_RecordOneOp);

}  // namespace

BENCHMARK_MAIN();
