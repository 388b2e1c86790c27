#include "tests/tracer/engine/fake_library.h"

#include <dlfcn.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace tt::test {
namespace {

// Interposed between libllama and the callbacks of one context.
struct InterposedContext {
  bool first = false, second = false;
  int decodes = 0;
  bool lose_tick = false;  // the next tick
  ggml_backend_sched_eval_callback eval = nullptr;
  void* eval_data = nullptr;
  ggml_abort_callback tick = nullptr;
  void* tick_data = nullptr;
};

FakeLibrary config;
std::deque<InterposedContext> contexts;
InterposedContext* current_context = nullptr;  // the context whose decode runs

bool on_eval(ggml_tensor* node, bool ask, void* self) {
  auto& interposed = *static_cast<InterposedContext*>(self);
  // Sets a parameter that this op does not use, so the graph differs from all before.
  if (config.new_graph_each_time && ask && node->op == GGML_OP_MUL_MAT)
    node->op_params[15] = interposed.decodes;
  return interposed.eval(node, ask, interposed.eval_data);
}

bool on_tick(void* self) {
  auto& interposed = *static_cast<InterposedContext*>(self);
  if (interposed.lose_tick) {
    interposed.lose_tick = false;
    return false;
  }
  return interposed.tick(interposed.tick_data);
}

template <class Function>
Function* library_function(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void configure_library(const FakeLibrary& as) {
  config = as;
  contexts.clear();
  current_context = nullptr;
}

}  // namespace tt::test

using namespace tt::test;

const char* llama_version() {
  return config.llama != nullptr ? config.llama
                                 : library_function(&llama_version, "llama_version")();
}

const char* ggml_version() {
  return config.ggml != nullptr ? config.ggml : library_function(&ggml_version, "ggml_version")();
}

llama_context* llama_init_from_model(llama_model* model, llama_context_params params) {
  InterposedContext& interposed = contexts.emplace_back();
  interposed.first = contexts.size() == 1;
  interposed.second = contexts.size() == 2;
  interposed.eval = params.cb_eval;
  interposed.eval_data = params.cb_eval_user_data;
  interposed.tick = params.abort_callback;
  interposed.tick_data = params.abort_callback_data;
  params.cb_eval = &on_eval;
  params.abort_callback = &on_tick;
  params.cb_eval_user_data = params.abort_callback_data = &interposed;
  if (interposed.second && config.other_graph) params.type_k = GGML_TYPE_BF16;
  llama_context* made =
      library_function(&llama_init_from_model, "llama_init_from_model")(model, params);
  current_context = &interposed;
  return made;
}

std::int32_t llama_decode(llama_context* context, llama_batch batch) {
  // Contexts are used one after the other here: the current one is the one created last.
  InterposedContext& interposed = *current_context;
  interposed.lose_tick = interposed.first && interposed.decodes == config.tick_lost_in;
  ++interposed.decodes;
  std::vector<llama_token> tokens(batch.token, batch.token + batch.n_tokens);
  if (interposed.second && config.other_tokens) std::ranges::fill(tokens, 6);
  batch.token = tokens.data();
  return library_function(&llama_decode, "llama_decode")(context, batch);
}
