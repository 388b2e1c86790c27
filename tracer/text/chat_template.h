// Renders a conversation to text with the chat template in the model's GGUF (Jinja, rendered
// by minja).
#pragma once

#include <expected>
#include <span>
#include <string>

#include "tracer/request/generation.h"

namespace tt {

// The vocabulary's begin-of-sequence and end-of-sequence tokens, as text; empty: none.
struct ChatTokens {
  std::string begin, end;
  bool adds_bos = false;  // the tokenizer adds `begin` to every text
};

// The result ends with the generation prompt and contains special tokens as text, except
// `begin` at the start if the tokenizer adds it. The error is the message of the template.
std::expected<std::string, std::string> apply_chat_template(const std::string& source,
                                                            std::span<const ChatMessage> messages,
                                                            const ChatTokens& marks);

}  // namespace tt
