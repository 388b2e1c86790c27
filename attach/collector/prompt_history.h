// The tokens of the last requests of a context, to say what of a prompt was evaluated before: a
// request is compared with the one that has most in common with it. The tokens that a program
// reuses are not evaluated. They are the begin of what the slot held, if at least half of that is
// reused. Else the program may have kept what it reuses elsewhere (llama-server: --cache-ram), and
// it is known only if all requests begin with the same tokens. A pure value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
    CachedTokens cached;
  };

  // A step of the current request. `ids`: of its tokens; `slot`: their sequence in the cache, if it
  // tells.
  void add(std::span<const std::int64_t> ids, std::span<const TokenRun> runs,
           std::optional<std::uint32_t> slot);
  // The positions have changed, or steps are missing: nothing is known of what the cache holds.
  void forget();
  // Ends the current request, which `session` contains. nullopt: it cannot be compared, because it
  // was not alone, or the begin of its prompt is not known.
  std::optional<Comparison> end(const std::string& session, const TokenWords& words);

 private:
  struct Request {
    std::string session;
    std::optional<std::uint32_t> slot;
    std::vector<std::int32_t> tokens;  // from position 0; empty: not known
  };
  // The first `count` tokens, which the slot held; nullopt: not known.
  std::optional<std::vector<std::int32_t>> reused(std::optional<std::uint32_t> slot,
                                                  std::size_t count) const;
  void keep(Request request);

  std::deque<Request> before_;  // the last one first
  std::vector<std::int32_t> tokens_;
  std::size_t prompt_ = 0;            // the first of tokens_
  std::optional<std::size_t> first_;  // position of the first of tokens_
  std::optional<std::uint32_t> slot_;
  bool unknown_ = false;  // the rest of the current request
};

}  // namespace tt::attach
