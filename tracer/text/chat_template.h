// Renders a conversation to text with the chat template in the model's GGUF, as llama-server does
// (docs/templates.md). A template is a program of whoever made the file: it may loop, recurse or
// allocate without limit. Therefore it runs in a child process.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "tracer/request/generation.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/sandbox/worker.h"
#include "tracer/text/jinja/jinja_engine.h"

namespace tt {

// The vocabulary's begin-of-sequence and end-of-sequence tokens, as text; empty: none.
struct ChatTokens {
  std::string begin, end;
  bool adds_bos = false;  // the tokenizer adds `begin` to every text
  bool adds_eos = false;  // the same, `end`
};

struct ChatError {
  // Conversation: the template rejects it. Template: it exceeds a limit or crashes. Server: the
  // child could not be run, or was cancelled.
  enum class Kind : std::uint8_t { Conversation, Template, Server } kind;
  std::string message;      // what is wrong and what to do
  std::string reason = {};  // Conversation: what the template says, and its line
};

// The result ends with the generation prompt, or with the last message if that is the assistant's:
// the answer continues it. It contains special tokens as text, except `begin` at the start and
// `end` at the end if the tokenizer adds them.
std::expected<std::string, ChatError> render_chat(Sandbox& sandbox, std::string_view source,
                                                  const Conversation& conversation,
                                                  const ChatTokens& marks,
                                                  const KeepGoing& keep_going = {});

// The handler "chat_template" of tt-worker. `engine` is used in the child.
JobKind chat_template_job(JinjaEngine& engine);

// What the handler does, in this process. The error is what the template says, and its line.
std::expected<std::string, std::string> apply_chat_template(JinjaEngine& engine,
                                                            std::string_view source,
                                                            const Conversation& conversation,
                                                            const ChatTokens& marks);

}  // namespace tt
