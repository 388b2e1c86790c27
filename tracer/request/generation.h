// What is asked of the engine, and what it tells while it works: values and one
// narrow interface.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// Text, a conversation (the model's chat template is applied), or token ids.
using Prompt = std::variant<std::string, std::vector<ChatMessage>, std::vector<std::int32_t>>;

struct Sampling {
  float temperature = 0.8F;     // 0: always the most likely token
  std::int32_t top_k = 40;      // 0: off
  float top_p = 0.95F;          // 1: off
  float min_p = 0.05F;          // 0: off
  float repeat_penalty = 1.0F;  // 1: off
  std::int32_t repeat_last_n = 64;
  std::uint32_t seed = 0xFFFFFFFFu;  // that: a random one, recorded
  std::string grammar;               // GBNF; empty: none
};

struct GenerationRequest {
  std::string id;  // of the session that it becomes; empty: a new one is made
  Prompt prompt;
  std::uint32_t max_tokens = 128;
  Sampling sampling;
  std::vector<std::string> stop;  // the text ends before any of these
  bool ignore_eos = false;
  bool reuse_prefix = true;  // keep cache cells that the last request has in common
  Level level = Level::Detailed;
  bool exact_timing = false;
  // VERBOSE: regex of the outputs to describe; empty: none. Not all of them by default: the
  // output of what writes a cache is the whole cache.
  std::string stats_pattern = "attn_out|ffn_out|ffn_moe_out|l_out|result_";
};

// Whether a token that ends the text ends the generation. Where a grammar is
// complete nothing but the end may follow.
bool ends_at_eog(const GenerationRequest& request);

enum class StopReason : std::uint8_t {
  None,
  Eos,
  Stop,
  Length,
  ContextFull,
  Cancelled,
  Error,
  Embedded
};

struct GenerationResult {
  StopReason reason = StopReason::None;
  std::string error;  // with Error: what to do
  std::string text;
  std::uint32_t prompt_tokens = 0, reused_tokens = 0, generated = 0;
  std::uint32_t seed = 0;   // the one that was used
  std::uint32_t steps = 0;  // graphs that were evaluated
  std::string reused_from;  // session that left the reused cells; empty: none, or not recorded
  std::int64_t prompt_ns = 0, generate_ns = 0;
  std::vector<float> embedding;  // embedding-only models
};

// What came of a session's recording.
struct RecordingResult {
  LossCounters losses;
  std::string error;                        // why it ended early; empty: everything is in the file
  std::uint64_t steps = 0, file_bytes = 0;  // that were written
};

// Called on the inference thread between steps; must not block.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // `piece`: what the text grows by (UTF-8 safe: empty while a character is incomplete).
  virtual void on_token(const Token& token, std::string_view piece) = 0;
  virtual void on_progress(std::uint32_t prompt_done, std::uint32_t prompt_tokens,
                           std::uint32_t generated) = 0;
  // Text that was held back (it might have become a stop string) and belongs to no new token.
  virtual void on_text(std::string_view rest) = 0;
};

// Time and chance: unique, and sorted by time. Fit for a file's name.
std::string new_session_id();

const char* to_text(StopReason);

}  // namespace tt
