#include "tracer/gguf/vocabulary.h"

namespace tt {

std::expected<Vocabulary, std::string> Vocabulary::open(const std::filesystem::path& model) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  LlamaModel loaded(llama_model_load_from_file(model.c_str(), params));
  if (!loaded) return std::unexpected(model.string() + ": llama.cpp cannot load its vocabulary");
  return Vocabulary(std::move(loaded));
}

std::string Vocabulary::piece(std::int32_t token) const {
  const llama_vocab* vocab = llama_model_get_vocab(model_.get());
  if (token < 0 || token >= llama_vocab_n_tokens(vocab)) return {};
  std::string text(64, '\0');
  for (;;) {
    const std::int32_t size = llama_token_to_piece(vocab, token, text.data(),
                                                   static_cast<std::int32_t>(text.size()), 0, true);
    if (size >= 0) {
      text.resize(static_cast<std::size_t>(size));
      return text;
    }
    text.resize(static_cast<std::size_t>(-size));
  }
}

bool Vocabulary::is_control(std::int32_t token) const {
  const llama_vocab* vocab = llama_model_get_vocab(model_.get());
  return token >= 0 && token < llama_vocab_n_tokens(vocab) && llama_vocab_is_control(vocab, token);
}

}  // namespace tt
