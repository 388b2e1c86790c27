// How tokens used the experts of a mixture: how often, how evenly, how much it
// changes from token to token, which together, and for which tokens. Pure
// functions, any thread; each is one pass over the session, in memory for one
// count per expert, pair or token that occurs.
//
// A choice is a router taking an expert for a token: a row of routing.h. Numbers
// that name no expert are left out. A model without experts has no routers; that
// is an answer and no error.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct ExpertCount {
  std::uint32_t expert = 0;
  std::uint64_t choices = 0;  // tokens that it was chosen for
  std::uint64_t first = 0;    // as the router's first choice
  double score = 0;           // sum of the recorded routing weights
  std::uint64_t scored = 0;   // choices with a recorded weight
  friend bool operator==(const ExpertCount&, const ExpertCount&) = default;
};

// One router: a layer's. Few layers have two.
struct RouterUse {
  LayerId layer;
  std::uint32_t router = 0;     // which of its layer's, from 0
  std::uint32_t experts = 0;    // to choose from
  std::uint32_t per_token = 0;  // chosen for each token
  std::uint64_t tokens = 0;     // routed
  std::uint64_t choices = 0;
  std::vector<ExpertCount> used;  // chosen at least once, by number
  // Between a token and the one right before it in the session, both routed here:
  std::uint64_t followed = 0;  // choices for such a token
  std::uint64_t turned = 0;    // of these, those that the token before did not have

  // Of the shares of choices, in bits. 0: always the same one; log2(experts): all alike.
  double entropy() const;
  // Mean absolute difference of the experts' choices over twice their mean. 0: all
  // alike; 1 - 1 / experts: always the same one.
  double gini() const;
  double coverage() const;  // experts chosen at least once, of all; 0 without experts
  double turnover() const;  // turned / followed. 0: every token takes those of the one before
  friend bool operator==(const RouterUse&, const RouterUse&) = default;
};

// By layer, then router. Of steps of one phase, or of all.
std::expected<std::vector<RouterUse>, TraceError> expert_use(const SessionReader& reader,
                                                             std::optional<Phase> phase,
                                                             const KeepGoing& keep_going = always);

// Two experts that a router chose for the same token. Only what chooses at most
// kMostTogether for a token is looked at: nothing real chooses more.
inline constexpr std::size_t kMostTogether = 256;
struct ExpertPair {
  std::uint32_t a = 0, b = 0;  // a < b
  std::uint64_t together = 0;  // tokens
  // together * tokens / (choices of a * choices of b). 1: as often as chance has it.
  double lift = 0;
  friend bool operator==(const ExpertPair&, const ExpertPair&) = default;
};

// What an expert answers to: a token of the vocabulary and how often it was
// chosen for that.
struct ExpertToken {
  std::int32_t id = 0;
  std::string text;           // bytes
  std::uint64_t choices = 0;  // times that the expert was chosen for it
  std::uint64_t times = 0;    // that it was routed here
  // Share of the expert among the times of this token, over its share among all. Above 1: it
  // answers to the token.
  double lift = 0;
  friend bool operator==(const ExpertToken&, const ExpertToken&) = default;
};

struct RouterDetail {
  RouterUse use;
  std::vector<ExpertPair> pairs;  // the most frequent first, then by numbers
  // Per expert in use.used: tokens with a lift above 1, those first that say most
  // (choices * log(lift)), then by id.
  std::vector<std::vector<ExpertToken>> tokens;
};

struct DetailLimits {
  std::size_t pairs = 100, tokens = 8;
};

// NotFound: the session has no such router (with what it has instead).
std::expected<RouterDetail, TraceError> router_detail(const SessionReader& reader, LayerId layer,
                                                      std::uint32_t router,
                                                      std::optional<Phase> phase,
                                                      DetailLimits limits,
                                                      const KeepGoing& keep_going = always);

// The experts of one token: in how many routers each was chosen.
struct TokenExpert {
  std::uint32_t expert = 0;
  std::uint32_t routers = 0;
  double score = 0;  // sum of the recorded routing weights
  friend bool operator==(const TokenExpert&, const TokenExpert&) = default;
};
struct TokenExperts {
  Token token;
  std::vector<TokenExpert> experts;  // by number
  friend bool operator==(const TokenExperts&, const TokenExperts&) = default;
};

// Tokens `range` of the session with the experts of one layer, or of all. A
// token that was evaluated several times (models without memory) has the sum.
std::expected<Page<TokenExperts>, TraceError> token_experts(const SessionReader& reader,
                                                            std::optional<LayerId> layer,
                                                            PageRange range,
                                                            const KeepGoing& keep_going = always);

}  // namespace tt
