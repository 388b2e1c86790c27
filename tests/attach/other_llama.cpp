// Evaluates a small graph with other_ggml.cpp, with other tokens in each step. In a file of its
// own, as libllama is: so that the calls of ggml can be interposed.
#include <array>
#include <cstdio>
#include <cstring>

#include "tests/attach/other_ggml.h"

namespace {

constexpr int kF32 = 0, kI32 = 26;

void* named(void* tensor, const char* name) { return ggml_set_name(tensor, name); }

bool count_tick(void* count) {
  ++*static_cast<int*>(count);
  return false;
}

}  // namespace

// The first step has 4 tokens, 100 to 103; the others have one: 104, 105...
void other_llama_run(int steps) {
  const InitParams params = {1U << 20U, nullptr, true};
  void* backend = other_ggml_backend();
  void* weights = ggml_init(params);
  void* embedding = named(ggml_new_tensor_4d(weights, kF32, 8, 64, 1, 1), "token_embd.weight");
  void* factor = named(ggml_new_tensor_1d(weights, kF32, 8), "blk.0.attn_norm.weight");
  void* q = named(ggml_new_tensor_4d(weights, kF32, 8, 16, 1, 1), "blk.0.attn_q.weight");
  ggml_backend_buffer_set_usage(ggml_backend_alloc_ctx_tensors(weights, backend), 1);
  void* scheduler = other_ggml_scheduler(backend);
  int ticks = 0;
  if (auto set = reinterpret_cast<void (*)(void*, bool (*)(void*), void*)>(
          ggml_backend_reg_get_proc_address(nullptr, "ggml_backend_set_abort_callback")))
    set(backend, count_tick, &ticks);
  int status = 0, nodes = 0;
  void* context = nullptr;
  void* tokens = nullptr;
  void* graph = nullptr;
  int token = 100;
  for (int step = 0; step < steps; ++step) {
    const int count = step == 0 ? 4 : 1;
    if (step < 2) {
      context = ggml_init(params);
      tokens = named(ggml_new_tensor_1d(context, kI32, count), "inp_tokens");
      ggml_set_input(tokens);
      void* rows = named(ggml_get_rows(context, embedding, tokens), "inp_embd");
      void* norm = named(ggml_rms_norm(context, rows, 1e-5F), "norm-0");
      void* scaled = named(ggml_mul(context, norm, factor), "attn_norm-0");
      void* product = named(ggml_mul_mat(context, q, scaled), "Qcur-0");
      void* shaped = named(ggml_reshape_2d(context, product, 4, 4 * count), "Qcur-0 (reshaped)");
      void* view = named(ggml_view_1d(context, shaped, 8, 16), "Qcur-0 (view)");
      void* sum = named(ggml_add(context, view, view), "result_output");
      ggml_set_output(sum);
      ggml_backend_alloc_ctx_tensors(context, backend);
      graph = ggml_new_graph(context);
      ggml_build_forward_expand(graph, sum);
    }
    std::array<std::int32_t, 4> ids{};
    for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = token++;
    std::memcpy(ggml_get_data(tokens), ids.data(), static_cast<std::size_t>(count) * 4);
    status += ggml_backend_sched_graph_compute_async(scheduler, graph);
    nodes += ggml_graph_n_nodes(graph);
  }
  std::printf("%d nodes, status %d\n%d ticks\n", nodes, status, ticks);
}
