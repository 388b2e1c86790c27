// A conversation as the text that the model was trained on, by the template in
// its GGUF (Jinja, rendered by minja).
#pragma once

#include <expected>
#include <span>
#include <string>

#include "tracer/generation.h"

namespace tt {

// Ends with what makes the model answer. Special tokens are text in it; the
// beginning-of-sequence token is left to the tokenizer. The error says what the
// template objected to.
std::expected<std::string, std::string> apply_chat_template(const std::string& source,
                                                            std::span<const ChatMessage> messages,
                                                            const std::string& eos_text);

}  // namespace tt
