// Which steps of a context belong to one request, and which tokens of drafts were not accepted.
// Known of each token are its position, whether its output is asked for, and where the cache tells
// (cache_sequences.h), its sequence there. A run of consecutive positions is a part of one request.
// A pure value.
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
  bool output = false;                      // its output is asked for
  std::optional<std::uint32_t> in_cache{};  // its sequence of the cache; nullopt: not known
};

// Consecutive tokens of one request.
struct TokenRun {
  std::size_t begin = 0, end = 0;         // in the step
  std::int32_t position = 0;              // of the first one
  std::optional<std::size_t> sequence{};  // that it continues, in the tracker; nullopt: a new one
  std::uint32_t request = 0;              // number of the request, from 1 since end()
  // Follows an output: one token, or several that all have an output (a checked draft). The others
  // are a prompt.
  bool generated = false;
  // Probably more of the batch of which the request had tokens before. If not, all of that were
  // accepted, which a later step shows.
  bool same_batch = false;
  // It evaluates again what had been evaluated: the tokens of the request at its position and
  // behind were not accepted.
  bool goes_back = false;
};

class RequestTracker {
 public:
  // Splits the tokens of a step. A prompt has no output before its last token, so a token with an
  // output ends a run if the next one has none; and where the sequence in the cache is not known, a
  // run ends where another request goes on with a token that has an output. A run continues a
  // request where its last run ended, or inside its last checked draft; a prompt after an output
  // begins another request.
  std::vector<TokenRun> runs_of(std::span<const BatchToken> tokens) const;

  // Whether the requests before are over: no run continues one.
  bool ends_before(std::span<const TokenRun> runs) const;

  // The step begins requests only, in other streams of the cache than one that was generating: this
  // one may go on in the next step. A batch with tokens of both may be evaluated in two.
  bool may_go_on(std::span<const BatchToken> tokens, std::span<const TokenRun> runs) const;

  // Adds a step; `runs` as by runs_of(). Times: CLOCK_MONOTONIC.
  void add(std::span<const BatchToken> tokens, std::span<const TokenRun> runs, std::int64_t begin,
           std::int64_t end);
  // A step without tokens: it may have moved a sequence in the cache (the next token is at a
  // smaller position), or evaluated an image of a prompt (at a larger one).
  void add_other() { moved_ = true; }
  // From now on, sequences of the cache have other numbers.
  void forget_cache();
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
    std::uint32_t request = 0;
    std::optional<std::uint32_t> in_cache;
    std::int32_t begin = 0, next = 0;  // of its last batch: first position, and that after its last
    bool output = false;               // of its last token
    bool generated_last = false;       // its last run
    bool in_batch = false;             // the last one of all
    std::int64_t first = 0, last = 0;  // generated tokens
    std::uint32_t generated = 0;
    std::optional<std::int64_t> ns_per_token() const;
  };
  // A sequence that the run can belong to, by what the cache tells.
  static bool may_be(const Sequence& sequence, std::optional<std::uint32_t> in_cache) {
    return !in_cache || !sequence.in_cache || in_cache == sequence.in_cache;
  }
  std::optional<std::size_t> continued(const std::vector<bool>& taken, const BatchToken& first,
                                       bool outputs) const;
  std::size_t end_of_run(std::span<const BatchToken> tokens, std::size_t begin,
                         const std::vector<bool>& taken) const;
  bool is_same_batch(std::span<const TokenRun> runs, const std::vector<bool>& taken) const;
  bool is_over(const Sequence& sequence, std::span<const TokenRun> runs,
               std::span<const BatchToken> tokens) const;

  std::vector<Sequence> sequences_;
  std::optional<std::int64_t> slowest_;  // of those that are over
  std::uint32_t requests_ = 0, rejected_ = 0;
  bool moved_ = false;
  bool has_drafts_ = false;  // any batch checked one
};

}  // namespace tt::attach
