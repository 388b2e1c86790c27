// The tokens of the last requests of a context, to say what of a prompt was evaluated before: a
// request is compared with the one that has most in common with it. The tokens that a program
// reuses are not evaluated. They are the begin of what the slot held, if at least half of that is
// reused. Else the program may have kept what it reuses elsewhere (llama-server: --cache-ram), and
// it is known only if all requests begin with the same tokens. A pure value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attach/collector/request_tracker.h"
#include "tracer/engine/prefix_match.h"

namespace tt::attach {

class PromptHistory {
 public:
  struct Comparison {
    std::uint32_t prompt_tokens = 0,
                  reused = 0;  // reused: the first ones, which were not evaluated
    CachedTokens cached;       // without a session: it is not known what was reused
  };

  // A step. `ids`: of its tokens; `runs`: by RequestTracker, before it adds the step.
  void add(std::span<const std::int64_t> ids, std::span<const BatchToken> batch,
           std::span<const TokenRun> runs);
  // The positions have changed, or steps are missing: nothing is known of what the cache holds.
  void forget();
  // The tokens before the first step of the request `number`; empty: none, or not known.
  std::span<const std::int32_t> reused(std::uint32_t number) const;
  // Ends all requests, which `session` contains. nullopt: there was not exactly one, or its begin
  // was not seen.
  std::optional<Comparison> end(const std::string& session, const TokenWords& words);

 private:
  struct Request {
    std::string session;  // empty: the one that is being recorded
    std::optional<std::uint32_t> slot;
    std::vector<std::int32_t> tokens;  // from position 0; empty: not known
  };
  struct Current {
    std::optional<std::uint32_t> slot;
    std::size_t reused = 0;            // tokens before its first step
    std::size_t prompt = 0;            // tokens, with the reused ones
    std::vector<std::int32_t> tokens;  // from position 0
    bool began = false;                // its first step was seen, and all since then
    bool known = false;                // `tokens`
  };
  Current begin(std::optional<std::uint32_t> slot, std::size_t position);
  // The first `count` tokens, which the slot held; nullopt: not known.
  std::optional<std::vector<std::int32_t>> held(std::optional<std::uint32_t> slot,
                                                std::size_t count) const;
  void keep(Current&& request);

  std::deque<Request> before_;                // the last one first
  std::map<std::uint32_t, Current> current_;  // by the number of the request
  bool forgot_ = false;                       // since the last step: what goes on seems to begin
};

}  // namespace tt::attach
