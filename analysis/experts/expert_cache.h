// Simulates caches of experts as inference engines build them: a cache holds whole experts in a
// number of equal slots, either per layer or in one pool for all layers. Pure functions, any
// thread.
//
// A request is one expert that a router chose for a token. Requests are in the order of the
// tokens, then of the routers (by layer), then of the ranks; the tokens of a prompt count one by
// one. An expert that is requested and not in the cache is loaded into a slot, and another one is
// evicted if no slot is free.
//
// The first half of the tokens fills the cache and the counts; only requests of the second half
// are counted. The control has the same tokens in a random order: what a policy gains in the
// recorded order but not in the control comes from the order of the tokens, the rest from some
// experts being chosen more often than others.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

enum class CachePolicy : std::uint8_t {
  Lru,     // evicts the least recently used expert
  Lfu,     // evicts the least often requested one (of all requests so far); ties: LRU
  Pinned,  // holds the experts requested most in the first half, never loads others; ties: the
           // first router, then the lower number
  Belady,  // the most that any cache of this size can serve: it knows all requests, begins the
           // second half with the best experts, and need not load what is requested
};
inline constexpr std::size_t kCachePolicies = 4;
const char* to_text(CachePolicy);

// The choices of a session.
struct ExpertChoices {
  struct Router {
    LayerId layer;
    std::uint32_t router = 0;   // index within the layer
    std::uint32_t experts = 0;  // total
    friend bool operator==(const Router&, const Router&) = default;
  };
  struct Choice {
    std::uint32_t router = 0;  // index into routers
    std::uint32_t expert = 0;
    friend bool operator==(const Choice&, const Choice&) = default;
  };
  std::vector<Router> routers;              // by layer and index
  std::vector<std::vector<Choice>> tokens;  // per token, in the order of requests
};
// Tokens without choices are left out. `phase`: steps of one phase.
std::expected<ExpertChoices, TraceError> expert_choices(
    const SessionReader& reader, std::optional<Phase> phase,
    const ContinueCheck& keep_going = never_cancel);

// The same tokens in the order of the control: a Fisher-Yates shuffle from the last token down,
// with the numbers of splitmix64 from seed 1; token i is exchanged with token (number mod (i + 1)).
ExpertChoices shuffled(const ExpertChoices& choices);

// Requests of the second half that were served from the cache.
struct CacheHits {
  std::array<std::uint64_t, kCachePolicies> layers{};  // `slots` per router
  std::array<std::uint64_t, kCachePolicies> pool{};    // one pool of slots x routers
  friend bool operator==(const CacheHits&, const CacheHits&) = default;
};
struct CacheRow {
  std::uint32_t slots = 0;  // per router
  CacheHits recorded, control;
  friend bool operator==(const CacheRow&, const CacheRow&) = default;
};
struct ExpertCaches {
  std::uint32_t routers = 0, experts = 0;  // experts: the most of a router
  std::uint64_t tokens = 0, counted_tokens = 0;
  std::uint64_t requests = 0;
  std::uint64_t counted = 0, counted_control = 0;  // of the second half
  std::vector<CacheRow> rows;                      // in the order of the slots
};

// `slots`: numbers from 1 to kMaxExpertSlots. Empty: powers of two below the number of experts.
inline constexpr std::uint32_t kMaxExpertSlots = 1U << 16;
std::expected<ExpertCaches, TraceError> expert_caches(
    const ExpertChoices& choices, std::span<const std::uint32_t> slots,
    const ContinueCheck& keep_going = never_cancel);
std::expected<ExpertCaches, TraceError> expert_caches(
    const SessionReader& reader, std::optional<Phase> phase, std::span<const std::uint32_t> slots,
    const ContinueCheck& keep_going = never_cancel);

Fields<ExpertCaches> fields_of(const ExpertCaches*);

}  // namespace tt
