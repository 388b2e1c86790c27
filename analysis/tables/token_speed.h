// Tokens per second: what the user of a session gets. The only definition (docs/glossary.md); all
// other code that shows a speed takes it from here. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>

#include "tracer/format/file/session_reader.h"

namespace tt {

// nullopt: no time, or no token after the first.
std::optional<double> tokens_per_second(std::uint64_t tokens, std::int64_t ns);

struct TokenSpeed {
  // Tokens generated after the first one, and the time from the first to the last one: evaluation,
  // sampling and output.
  std::uint64_t tokens = 0;
  std::int64_t ns = 0;
  // From the start of the session, after its wait in the queue, to its first generated token; with
  // requests of a program, from the begin of the request.
  std::optional<std::int64_t> first_token_ns;  // nullopt: none, or not recorded
  // Tokens of the prompt that were evaluated, and the time from the first to the end of the last.
  std::uint64_t prompt_tokens = 0;
  std::int64_t prompt_ns = 0;
  // Choosing the tokens after the first one (samplers and grammar); nullopt: not recorded.
  std::optional<std::int64_t> sample_ns;

  std::optional<double> per_second() const { return tokens_per_second(tokens, ns); }
  std::optional<double> prompt_per_second() const {
    return tokens_per_second(prompt_tokens, prompt_ns);
  }
  // Share of `ns`, 0 to 1; nullopt: unknown.
  std::optional<double> sample_share() const;
  friend bool operator==(const TokenSpeed&, const TokenSpeed&) = default;
};

struct RequestTimes {              // of a request of a program that was attached to
  std::optional<Ns> begin, first;  // of its first step, and of the first with a generated token
  Ns prompt_end{}, last{};         // the last one with a generated token begins
  std::uint64_t prompt = 0, generated = 0;  // tokens
};

// The requests in the first steps of a session. Of one that grows, the next token_speed() continues
// with it.
struct RequestsSoFar {
  std::string session;  // id
  std::uint32_t steps = 0, tokens = 0;
  std::map<std::uint32_t, RequestTimes> requests;
};

// Of a session that runs, was interrupted or was recorded by an older version: up to the last token
// whose evaluation began. A step begins just after the token that it evaluates was put out.
// Of a program that was attached to, the times of its requests are added up, without those between
// them: requests at the same time count once, and the first token is that of the first request.
// Reads the steps of the prompt, the first generating step and the last steps; of a program that
// was attached to, all steps and tokens, or with `so_far` those that it lacks and the last
// kStepsThatChange: what became of a draft is known some steps later. Of a damaged file the figures
// can be missing.
inline constexpr std::uint32_t kStepsThatChange = 256;
std::expected<TokenSpeed, TraceError> token_speed(const SessionReader& reader,
                                                  RequestsSoFar* so_far = nullptr);

}  // namespace tt
