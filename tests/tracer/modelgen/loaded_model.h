#pragma once

#include <ggml-backend.h>
#include <llama.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

// A model and context in libllama, for tests that run generated models.
namespace tt::modelgen {

struct ModelFree {
  void operator()(llama_model* model) const noexcept { llama_model_free(model); }
};
struct ContextFree {
  void operator()(llama_context* context) const noexcept { llama_free(context); }
};

struct LoadedModel {
  std::unique_ptr<llama_model, ModelFree> model;        // null: not loaded
  std::unique_ptr<llama_context, ContextFree> context;  // null: not loaded

  const llama_vocab* vocab() const { return llama_model_get_vocab(model.get()); }
};

inline LoadedModel load_model(const std::filesystem::path& path, bool embeddings = false) {
  [[maybe_unused]] static const bool ready = [] {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    ggml_backend_load_all();
    return true;
  }();
  LoadedModel loaded;
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  model_params.use_extra_bufts = false;  // AMX buffers abort with MLA weights
  loaded.model.reset(llama_model_load_from_file(path.c_str(), model_params));
  if (loaded.model) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_threads = 1;
    params.n_threads_batch = 1;
    params.embeddings = embeddings;
    loaded.context.reset(llama_init_from_model(loaded.model.get(), params));
  }
  return loaded;
}

inline std::vector<llama_token> tokenize(const llama_vocab* vocab, const std::string& text,
                                         bool special = false) {
  std::vector<llama_token> tokens(text.size() + 8);
  const int count = llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), tokens.data(),
                                   static_cast<int>(tokens.size()), special, special);
  tokens.resize(static_cast<std::size_t>(count > 0 ? count : 0));
  return tokens;
}

inline std::string detokenize(const llama_vocab* vocab, std::vector<llama_token> tokens) {
  std::string text(tokens.size() * 32 + 32, '\0');
  const int size = llama_detokenize(vocab, tokens.data(), static_cast<int>(tokens.size()),
                                    text.data(), static_cast<int>(text.size()), true, false);
  text.resize(static_cast<std::size_t>(size > 0 ? size : 0));
  return text;
}

// The most likely token after the last decode.
inline llama_token greedy(const LoadedModel& loaded) {
  const float* logits = llama_get_logits_ith(loaded.context.get(), -1);
  llama_token best = 0;
  for (llama_token token = 1; token < llama_vocab_n_tokens(loaded.vocab()); ++token) {
    if (logits[token] > logits[best]) {
      best = token;
    }
  }
  return best;
}

}  // namespace tt::modelgen
