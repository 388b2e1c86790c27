// Requests to the engine, their results, and the listener interface for progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/request/debug_options.h"
#include "tracer/request/sampling.h"

namespace tt {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool", ...
  std::string content;  // its text; of typed content: the texts of the parts, one per line
  // The whole message as JSON, if it has more than a role and a text: tool_calls, tool_call_id,
  // name, reasoning_content, typed content. Empty: it does not.
  std::string json = {};
  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// What the model's chat template is applied to.
struct Conversation {
  std::vector<ChatMessage> messages;
  std::string tools = {};      // JSON, an array of functions as in OpenAI's API; empty: none
  std::string arguments = {};  // JSON, an object: chat_template_kwargs; empty: none

  Conversation() = default;
  Conversation(std::vector<ChatMessage> all) : messages(std::move(all)) {}  // NOLINT(*-explicit-*)
  friend bool operator==(const Conversation&, const Conversation&) = default;
};

// Text, a conversation, or token ids.
using Prompt = std::variant<std::string, Conversation, std::vector<std::int32_t>>;

inline constexpr std::uint64_t kDefaultCaptureBytes = 256U << 20;

struct GenerationRequest {
  std::string id;  // session id; empty: a new id is generated
  Prompt prompt;
  std::uint32_t max_tokens = 128;
  Sampling sampling;
  std::vector<std::string> stop;  // generation ends before any of these strings
  bool ignore_eos = false;
  bool reuse_prefix = true;  // reuse KV cells of a prefix in common with the last request
  Level level = Level::Detailed;
  bool exact_timing = false;
  bool minor_faults = false;  // record each minor page fault, too
  // Record what of the model files is in memory, before steps: at most one snapshot per interval,
  // 0: before every step. nullopt: none.
  std::optional<std::uint32_t> residency_interval_ms;
  std::int64_t queued_ns = 0;  // how long it waited for other requests
  // Level VERBOSE: regex of the tensors to compute statistics of; empty: none. The default does
  // not match all: the output of an op that writes to a cache is the whole cache.
  std::string stats_pattern = "attn_out|ffn_out|ffn_moe_out|l_out|result_";
  // Op outputs whose values are recorded (tracer/probe/value_capture.h), and the most bytes of
  // them, as f32. Needs level DETAILED.
  std::vector<std::string> capture;
  std::uint64_t capture_bytes = kDefaultCaptureBytes;
  std::optional<DebugOptions> debug;  // nullopt: the run never stops
};

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

// Why no more of a prompt was reused than was.
enum class ReuseEnd : std::uint8_t {
  None,            // all was reused that could be
  OtherToken,      // the prompt goes on with another token than the memory held
  SlidingWindow,   // the memory no longer held the tokens in the window
  RecurrentState,  // it cannot be taken back to an earlier token
  NotKept          // the program did not use them; of an attached one, whose reason is not visible
};
const char* to_text(ReuseEnd);

// What the prompt has in common with the tokens that the context's memory held before it.
struct CachedTokens {
  std::uint32_t tokens = 0;    // in the memory; 0: none, not wanted by the request, not recorded
  std::uint32_t common = 0;    // the first ones of both
  std::uint32_t repeated = 0;  // more tokens of the prompt, as by repeated_tokens()
  std::string session;         // that computed them; empty: not recorded
  ReuseEnd end = ReuseEnd::None;
  // Where the prompt goes on with another token, UTF-8: the text of a few tokens before it, of the
  // prompt from it on, and of the memory from it on. Empty: it does not.
  std::string before, prompt, cached;
  // The message of the prompt that has the first of them, as by part_of()
  // (tracer/engine/prefix_match.h). Number 0: not known.
  std::string part;
  std::uint32_t part_number = 0;
};

struct GenerationResult {
  StopReason reason = StopReason::None;
  std::string error;            // with Error: what is wrong and what to do
  bool invalid_logits = false;  // the error: a logit is NaN or infinity
  std::string text;
  std::uint32_t prompt_tokens = 0, reused_tokens = 0, generated = 0;
  std::uint32_t seed = 0;   // seed used
  std::uint32_t steps = 0;  // graphs evaluated
  CachedTokens cached;
  std::int64_t prompt_ns = 0;
  // From the first to the last generated token, output included.
  std::int64_t generate_ns = 0;
  std::int64_t first_token_ns = 0;  // since the start of the session; 0: no token was generated
  std::int64_t sample_ns = 0, detokenize_ns = 0;
  std::int64_t next_sample_ns = 0;  // part of `sample_ns`: tokens after the first one
  std::vector<float> embedding;     // embedding-only models
};

// Result of recording a session.
struct RecordingResult {
  LossCounters losses;
  std::string error;                        // why it ended early; empty: everything was written
  std::uint64_t steps = 0, file_bytes = 0;  // written
};

// Called on the inference thread between steps; must not block.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // `piece`: text to append; valid UTF-8 (empty while a character is incomplete).
  virtual void on_token(const Token& token, std::string_view piece) = 0;
  virtual void on_progress(std::uint32_t prompt_done, std::uint32_t prompt_tokens,
                           std::uint32_t generated) = 0;
  // The remaining text, held back as a possible stop string, when no further token follows.
  virtual void on_text(std::string_view rest) = 0;
};

// A unique id from the UTC time and a random number. Sorts by time; valid in file names.
std::string new_session_id();

const char* to_text(StopReason);

}  // namespace tt
