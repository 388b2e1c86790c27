// The vocabulary of a model, without its weights.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>

#include "tracer/gguf/llama_handles.h"

namespace tt {

class Vocabulary {
 public:
  // Silences llama.cpp's log for good: the programs that call this load nothing else.
  static std::expected<Vocabulary, std::string> open(const std::filesystem::path& model);
  // Bytes of the token; may be an incomplete UTF-8 character. Empty: there is no such token.
  std::string piece(std::int32_t token) const;
  // Not text, such as the begin of a message.
  bool is_control(std::int32_t token) const;

 private:
  explicit Vocabulary(LlamaModel model) : model_(std::move(model)) {}
  LlamaModel model_;
};

}  // namespace tt
