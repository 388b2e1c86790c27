// Which tokens attention heads look at, from captured attention weights (docs/values.md, `tt record
// --capture attention`). Pure functions, any thread.
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

// The weights of one head for one token (the query), by token (the keys). Their sum is less than 1
// if the model has attention sinks. Tokens without a weight, outside a sliding window, have 0.
struct TokenAttention {
  LayerId layer;
  std::uint32_t head = 0, token = 0;
  std::vector<float> weights;  // of tokens 0, 1, ... up to the last one that has a key
};

struct TokenAttentionQuery {
  std::optional<std::uint32_t> layer{}, head{}, token{};  // nullopt: all
  PageRange page;
};

// In the order of steps, layers, heads and tokens. Errors: NotFound, the session has no such layer,
// head or token.
std::expected<Page<TokenAttention>, TraceError> token_attention(
    const SessionReader& reader, const TokenAttentionQuery& query,
    const ContinueCheck& keep_going = never_cancel);

Fields<Page<TokenAttention>> fields_of(const Page<TokenAttention>*);

// The same as a mean over the heads of one layer or of several, by token.
struct MeanAttention {
  std::uint32_t token = 0;
  std::uint64_t heads = 0;     // that were captured for the token
  std::vector<float> weights;  // as of TokenAttention
};

struct TokenRange {
  std::uint32_t from = 0, to = 0;  // half-open
};

struct MeanAttentionQuery {
  std::optional<std::uint32_t> layer{}, head{};  // nullopt: all
  std::optional<TokenRange> tokens{};            // that look at others
  PageRange page;
};

// In the order in which the tokens were evaluated. Errors: NotFound, the session has no such layer,
// head or token.
std::expected<Page<MeanAttention>, TraceError> mean_attention(
    const SessionReader& reader, const MeanAttentionQuery& query,
    const ContinueCheck& keep_going = never_cancel);

Fields<Page<MeanAttention>> fields_of(const Page<MeanAttention>*);

// Means over the captured tokens except token 0, which has only itself to look at.
struct HeadAttention {
  LayerId layer;
  std::uint32_t head = 0;
  std::uint64_t tokens = 0;
  double entropy = 0;                                       // bits
  double distance = 0;                                      // tokens
  double first = 0, previous = 0, self = 0, elsewhere = 0;  // weights
  std::optional<double> induction;  // nullopt: no token is the same as an earlier one
};

// The head with the largest value of a measure; the first one of equals.
struct LargestHead {
  std::string measure;  // a field of HeadAttention: "previous"
  LayerId layer;
  std::uint32_t head = 0;
  std::string text;  // "Layer 2 head 5 attends most to the previous token: 81.2 %"
};

struct AttentionTable {
  std::vector<HeadAttention> heads;  // by layer and head
  std::vector<LargestHead> largest;  // by measure, without those that no head has
};

std::expected<AttentionTable, TraceError> attention_table(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

Fields<AttentionTable> fields_of(const AttentionTable*);

// For a session without captured attention, or without what was asked for.
inline constexpr const char* kNoCapturedAttention =
    "The session has no such attention weights. Record with --capture attention, \"capture\": "
    "[\"attention\"] in the request, or the setting Attention weights of the page.";

}  // namespace tt
