#include "tests/tracer/engine/odd_library.h"

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
struct Between {
  bool first = false, second = false;
  int decodes = 0;
  bool lose_tick = false;  // the next tick
  ggml_backend_sched_eval_callback eval = nullptr;
  void* eval_data = nullptr;
  ggml_abort_callback tick = nullptr;
  void* tick_data = nullptr;
};

OddLibrary told;
std::deque<Between> contexts;
Between* deciding = nullptr;  // the context whose decode runs

bool on_eval(ggml_tensor* node, bool ask, void* self) {
  auto& between = *static_cast<Between*>(self);
  // Sets a parameter that this op does not use, so the graph differs from all before.
  if (told.restless && ask && node->op == GGML_OP_MUL_MAT) node->op_params[15] = between.decodes;
  return between.eval(node, ask, between.eval_data);
}

bool on_tick(void* self) {
  auto& between = *static_cast<Between*>(self);
  if (between.lose_tick) {
    between.lose_tick = false;
    return false;
  }
  return between.tick(between.tick_data);
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void behave(const OddLibrary& as) {
  told = as;
  contexts.clear();
  deciding = nullptr;
}

}  // namespace tt::test

using namespace tt::test;

const char* llama_version() {
  return told.llama != nullptr ? told.llama : real(&llama_version, "llama_version")();
}

const char* ggml_version() {
  return told.ggml != nullptr ? told.ggml : real(&ggml_version, "ggml_version")();
}

llama_context* llama_init_from_model(llama_model* model, llama_context_params params) {
  Between& between = contexts.emplace_back();
  between.first = contexts.size() == 1;
  between.second = contexts.size() == 2;
  between.eval = params.cb_eval;
  between.eval_data = params.cb_eval_user_data;
  between.tick = params.abort_callback;
  between.tick_data = params.abort_callback_data;
  params.cb_eval = &on_eval;
  params.abort_callback = &on_tick;
  params.cb_eval_user_data = params.abort_callback_data = &between;
  if (between.second && told.other_graph) params.type_k = GGML_TYPE_BF16;
  llama_context* made = real(&llama_init_from_model, "llama_init_from_model")(model, params);
  deciding = &between;
  return made;
}

std::int32_t llama_decode(llama_context* context, llama_batch batch) {
  // Contexts are used one after the other here: the current one is the one created last.
  Between& between = *deciding;
  between.lose_tick = between.first && between.decodes == told.tick_lost_in;
  ++between.decodes;
  std::vector<llama_token> tokens(batch.token, batch.token + batch.n_tokens);
  if (between.second && told.other_tokens) std::ranges::fill(tokens, 6);
  batch.token = tokens.data();
  return real(&llama_decode, "llama_decode")(context, batch);
}
