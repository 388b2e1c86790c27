// A conversation as the text that the model was trained on, by the template in
// its GGUF (Jinja, rendered by minja).
#pragma once

#include <expected>
#include <span>
#include <string>

#include "tracer/request/generation.h"

namespace tt {

// The vocabulary's marks of a text's begin and end, as text; empty: it has none.
struct ChatMarks {
  std::string begin, end;
  bool tokenizer_begins = false;  // it puts `begin` before every text
};

// Ends with what makes the model answer. Special tokens are text in it, but for the mark of
// the begin where the tokenizer puts that. The error says what the template objected to.
std::expected<std::string, std::string> apply_chat_template(const std::string& source,
                                                            std::span<const ChatMessage> messages,
                                                            const ChatMarks& marks);

}  // namespace tt
