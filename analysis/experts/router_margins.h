// What the routers of a mixture of experts were near to choosing, from a session with `--capture
// router` (docs/values.md). Pure functions, any thread.
//
// A router chooses the experts with the largest scores. They are what it sorts: probabilities, or,
// depending on the architecture, probabilities plus a bias, those of some groups of experts, or
// logits.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct ScoredExpert {
  std::uint32_t expert = 0;
  double score = 0;
  std::optional<double> probability;  // nullopt: not captured, or the router computes none
};

// What one router did with one token.
struct TokenMargin {
  LayerId layer;
  std::uint32_t router = 0;  // index within the layer
  std::uint32_t token = 0;   // index in the session
  StepId step;
  // Score of the last chosen expert minus that of the first one not chosen. nullopt: there was no
  // other to choose.
  std::optional<double> margin;
  std::optional<double> entropy;     // of the probabilities, in bits
  std::vector<ScoredExpert> chosen;  // by rank
  std::vector<ScoredExpert> next{};  // the best ones not chosen, the largest score first
};

struct TokenMarginQuery {
  std::optional<LayerId> layer{};  // nullopt: all
  std::optional<std::uint32_t> token{};
  PageRange page{};
};

inline constexpr std::size_t kNextExperts = 4;  // TokenMargin::next has at most so many

// In the order of steps, routers and tokens. Errors: NotFound, the session has no such layer or
// token.
std::expected<Page<TokenMargin>, TraceError> token_margins(
    const SessionReader& reader, const TokenMarginQuery& query,
    const ContinueCheck& keep_going = never_cancel);

Fields<Page<TokenMargin>> fields_of(const Page<TokenMargin>*);

// Of one router, over the captured tokens.
struct RouterMargins {
  LayerId layer;
  std::uint32_t router = 0;
  std::string scores;         // name of the tensor that has them
  std::uint32_t experts = 0;  // total
  std::uint64_t tokens = 0;
  std::optional<double> margin;  // median
  std::optional<double> near;    // share of the tokens with a margin below RouterMarginTable::below
  std::optional<double> entropy;  // mean, in bits
};

struct RouterMarginTable {
  double below = 0;
  std::vector<RouterMargins> routers;  // by layer
};

std::expected<RouterMarginTable, TraceError> router_margins(
    const SessionReader& reader, double below, const ContinueCheck& keep_going = never_cancel);

Fields<RouterMarginTable> fields_of(const RouterMarginTable*);

// For a session without captured scores, or without what was asked for.
inline constexpr const char* kNoCapturedRouters =
    "The session has no captured router scores of a mixture of experts. Record with --capture "
    "router, \"capture\": [\"router\"] in the request, or the setting Router scores of the page.";

}  // namespace tt
