// Expert usage of mixture-of-experts models: frequency, balance, turnover from token to
// token, pairs that are chosen together, and tokens per expert. Pure functions, any thread;
// each makes one pass over the session and stores one count per expert, pair or token that
// occurs.
//
// A choice is a router selecting an expert for a token: a row of routing.h. Expert numbers
// out of range are skipped. A model without experts gives an empty result, not an error.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/experts/expert_load.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct ExpertCount {
  std::uint32_t expert = 0;
  std::uint64_t choices = 0;  // tokens that the expert was chosen for
  std::uint64_t first = 0;    // of these, as the router's first choice
  double score = 0;           // sum of the recorded routing weights
  std::uint64_t scored = 0;   // choices with a recorded weight
  friend bool operator==(const ExpertCount&, const ExpertCount&) = default;
};

// One router of a layer. Few layers have two.
struct RouterUse {
  LayerId layer;
  std::uint32_t router = 0;     // index within the layer
  std::uint32_t experts = 0;    // total experts
  std::uint32_t per_token = 0;  // experts chosen per token
  std::uint64_t tokens = 0;     // routed tokens
  std::uint64_t choices = 0;
  std::vector<ExpertCount> used;  // experts chosen at least once, by number
  // For tokens whose predecessor in the session was routed here, too:
  std::uint64_t followed = 0;  // choices for these tokens
  std::uint64_t turned = 0;    // of these, choices that the predecessor did not have

  // Of `entropy()` and `gini()`; none: too few tokens.
  std::optional<LoadIntervals> intervals{};

  double entropy() const;   // load_entropy()
  double gini() const;      // load_gini()
  double coverage() const;  // share of experts chosen at least once; 0 without experts
  // How many of the most used experts have at least `percent` of the choices.
  std::uint32_t experts_for(std::uint32_t percent) const;
  double turnover() const;  // turned / followed. 0: every token has the same experts
  // The most used ones with their share of the choices: "3 (20 %), 1 (12 %)".
  std::string most_used(std::size_t count) const;
  friend bool operator==(const RouterUse&, const RouterUse&) = default;
};

// Percents of the choices for which tables and JSON list experts_for().
inline constexpr std::array<std::uint32_t, 3> kUsePercents = {90, 95, 99};
// Of the routers: median (the mean of the middle two) and range of experts_for(percent).
struct ExpertsFor {
  std::uint32_t least = 0, most = 0;
  double median = 0;
  friend bool operator==(const ExpertsFor&, const ExpertsFor&) = default;
};
ExpertsFor experts_for(std::span<const RouterUse> routers, std::uint32_t percent);  // not empty

// Sorted by layer, then router. For the steps of one phase, or all steps.
std::expected<std::vector<RouterUse>, TraceError> expert_use(
    const SessionReader& reader, std::optional<Phase> phase,
    const ContinueCheck& keep_going = never_cancel);

// Two experts that a router chose for the same token. Choices of more than kMaxTogether
// experts per token are skipped; no real model has them.
inline constexpr std::size_t kMaxTogether = 256;
struct ExpertPair {
  std::uint32_t a = 0, b = 0;  // a < b
  std::uint64_t together = 0;  // tokens for which both were chosen
  // together * tokens / (choices of a * choices of b). 1: statistically independent.
  double lift = 0;
  friend bool operator==(const ExpertPair&, const ExpertPair&) = default;
};

// A vocabulary token and how often an expert was chosen for it.
struct ExpertToken {
  std::int32_t id = 0;
  std::string text;           // bytes, not necessarily UTF-8
  std::uint64_t choices = 0;  // times the expert was chosen for the token
  std::uint64_t times = 0;    // times the token was routed here
  // The expert's share of the routings of this token, divided by its share of all routings.
  // Above 1: the expert prefers the token. `low` and `high`: the interval that contains it with a
  // confidence of 95 %, from the number of routings (Wilson).
  double lift = 0, low = 0, high = 0;
  friend bool operator==(const ExpertToken&, const ExpertToken&) = default;
};

// A token that was routed fewer times says nothing about an expert.
inline constexpr std::uint64_t kLeastTokenTimes = 5;

struct RouterDetail {
  RouterUse use;
  std::vector<ExpertPair> pairs;  // most frequent first, then by expert numbers
  // Per expert of use.used: tokens with a lift above 1 that were routed kLeastTokenTimes times,
  // sorted by choices * log(lift)
  // descending, then by id.
  std::vector<std::vector<ExpertToken>> tokens;
};

struct DetailLimits {
  std::size_t pairs = 100, tokens = 8;
};

// NotFound: the session has no such router; the message lists the layers that have one.
std::expected<RouterDetail, TraceError> router_detail(
    const SessionReader& reader, LayerId layer, std::uint32_t router, std::optional<Phase> phase,
    DetailLimits limits, const ContinueCheck& keep_going = never_cancel);

// An expert that was chosen for a token, with the number of routers that chose it.
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

// The tokens `range` of the session with their experts of one layer, or of all layers. A
// token that was evaluated several times (models without memory) has the sum.
std::expected<Page<TokenExperts>, TraceError> token_experts(
    const SessionReader& reader, std::optional<LayerId> layer, PageRange range,
    const ContinueCheck& keep_going = never_cancel);

// {"routers", "experts_for_percent"}
Fields<std::vector<RouterUse>> fields_of(const std::vector<RouterUse>*);
Fields<RouterDetail> fields_of(const RouterDetail*);
Fields<Page<TokenExperts>> fields_of(const Page<TokenExperts>*);

// A sentence for a session without choices, or without any in the steps that were asked for.
std::string no_expert_choices(const SessionInfo&);

}  // namespace tt
