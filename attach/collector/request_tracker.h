// Which steps of a context belong to one request. Slots are not seen, only the tokens of each step
// with their positions and outputs: a run of consecutive positions is a part of one sequence. A
// pure value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tt::attach {

// One token of a step.
struct BatchToken {
  std::int32_t position = 0;
  bool output = false;  // its output is asked for
};

// Consecutive tokens of one sequence.
struct TokenRun {
  std::size_t begin = 0, end = 0;       // in the step
  std::int32_t position = 0;            // of the first one
  std::optional<std::size_t> sequence;  // that it continues, in the tracker; nullopt: a new one
  // Follows an output: one token, or several that all have an output (a checked draft). The others
  // are a prompt.
  bool generated = false;
};

class RequestTracker {
 public:
  // Splits the tokens of a step. A prompt has no output before its last token, so a token with an
  // output ends a run if the next one has none; and where two sequences generate at consecutive
  // positions, a run ends where another sequence goes on. A run continues a sequence where its last
  // run ended, or inside its last checked draft; a prompt after an output begins another request.
  std::vector<TokenRun> runs_of(std::span<const BatchToken> tokens) const;

  // Whether the requests before are over: no run continues one.
  bool ends_before(std::span<const TokenRun> runs) const;

  // Adds a step; `runs` as by runs_of(). Times: CLOCK_MONOTONIC.
  void add(std::span<const BatchToken> tokens, std::span<const TokenRun> runs, std::int64_t begin,
           std::int64_t end);
  // A step without tokens: it may have moved a sequence in the cache (the next token is at a
  // smaller position), or evaluated an image of a prompt (at a larger one).
  void add_other() { moved_ = true; }
  // All requests are over.
  void end();

  std::uint32_t requests() const { return requests_; }  // begun since end()
  // Generated tokens since end() that were evaluated again, because their draft was not accepted.
  std::uint32_t rejected() const { return rejected_; }
  // Of the slowest of them: from the begin of its first to the end of its last step with generated
  // tokens, per token. nullopt: none was generated.
  std::optional<std::int64_t> slowest_ns_per_token() const;

 private:
  struct Sequence {
    std::int32_t begin = 0, next = 0;  // of its last run: first position, and that after its last
    bool output = false;               // of its last token
    std::int64_t first = 0, last = 0;  // generated tokens
    std::uint32_t generated = 0;
    std::optional<std::int64_t> ns_per_token() const;
  };
  std::optional<std::size_t> continued(const std::vector<bool>& taken, std::int32_t position,
                                       bool outputs) const;
  std::vector<Sequence> sequences_;
  std::optional<std::int64_t> slowest_;  // of those that are over
  std::uint32_t requests_ = 0, rejected_ = 0;
  bool moved_ = false;
};

}  // namespace tt::attach
