// Limits of request parameters, shared by HTTP (api/json/generation_body.h, which defines the
// names; api/openapi.yaml) and the command line (tt record). Those of the samplers: sampling.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "tracer/request/model_options.h"

namespace tt {

struct NumberBounds {
  std::string_view name;
  double min, max;  // inclusive; exactly representable as double
};

inline constexpr double kMaxInt32 = 2147483647, kMaxUint32 = 4294967295;

inline constexpr std::array kRequestBounds = {
    NumberBounds{"max_tokens", 0, kMaxInt32},
    NumberBounds{"seed", -1, kMaxUint32},
    NumberBounds{"residency_interval_ms", 0, 3'600'000},
    NumberBounds{"capture_bytes", 0, 1ULL << 50},
    NumberBounds{"hold_ms", 1, 3'600'000},
};

// An unknown name is a compile error.
consteval NumberBounds bounds_of(std::string_view name) {
  return *std::ranges::find(kRequestBounds, name, &NumberBounds::name);
}

inline constexpr NumberBounds kTokenBounds = {"tokens", 0, kMaxInt32};  // of each id
inline constexpr std::size_t kMaxStops = 32;
inline constexpr std::size_t kMaxMessages = 4096;
// Regular expressions (name_pattern.h) are parsed recursively, per parenthesis. The limit prevents
// a stack overflow.
inline constexpr std::size_t kMaxPatternBytes = 1000;
// Each matches the names of all ops of a graph when the graph is first seen.
inline constexpr std::size_t kMaxCaptures = 8;
inline constexpr std::size_t kMaxGrammarBytes = 64U << 10;

}  // namespace tt
