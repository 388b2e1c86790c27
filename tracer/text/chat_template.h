// Renders a conversation to text with the chat template in the model's GGUF (Jinja, rendered
// by minja). A template is a program of whoever made the file: it may loop, recurse or allocate
// without limit. Therefore it runs in a child process.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "tracer/request/generation.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/sandbox/worker.h"

namespace tt {

// The vocabulary's begin-of-sequence and end-of-sequence tokens, as text; empty: none.
struct ChatTokens {
  std::string begin, end;
  bool adds_bos = false;  // the tokenizer adds `begin` to every text
};

struct ChatError {
  // Conversation: the template rejects it. Template: it exceeds a limit or crashes. Server: the
  // child could not be run, or was cancelled.
  enum class Kind : std::uint8_t { Conversation, Template, Server } kind;
  std::string message;  // what is wrong and what to do
};

// The result ends with the generation prompt and contains special tokens as text, except
// `begin` at the start if the tokenizer adds it.
std::expected<std::string, ChatError> render_chat(Sandbox& sandbox, std::string_view source,
                                                  std::span<const ChatMessage> messages,
                                                  const ChatTokens& marks,
                                                  const KeepGoing& keep_going = {});

// The handler "chat_template" of tt-worker.
JobKind chat_template_job();

// What the handler does, in this process. The error is the message of the template.
std::expected<std::string, std::string> apply_chat_template(const std::string& source,
                                                            std::span<const ChatMessage> messages,
                                                            const ChatTokens& marks);

}  // namespace tt
