// What of an op is captured besides its output and its attention weights (ValuesOf, step.h): what
// the model would say after it (lens_values.h), its sources, and the largest values of each row.
#pragma once

#include <cstdint>
#include <utility>

#include "tracer/format/model/step.h"

namespace tt {

// Sources of the first node of an op, from 0. ggml has at most this number.
inline constexpr std::uint8_t kMaxCapturedSources = 10;

namespace captured {

inline constexpr std::uint8_t kFirstSource = 3;  // 0 to 2: output, attention, lens
inline constexpr std::uint8_t kEndOfSources = kFirstSource + kMaxCapturedSources;
// The largest values of each row of the output, or of a source: ne is {K, 2, rows, 1}, first the K
// columns (indices as numbers), then their values, the largest absolute value first.
inline constexpr std::uint8_t kTop = 16;

}  // namespace captured

constexpr ValuesOf values_of_source(std::uint8_t source) {
  return ValuesOf{static_cast<std::uint8_t>(captured::kFirstSource + source)};
}
// `of`: the output or a source.
constexpr ValuesOf top_of(ValuesOf of) {
  return ValuesOf{static_cast<std::uint8_t>(captured::kTop + std::to_underlying(of))};
}

constexpr bool is_top(ValuesOf of) { return std::to_underlying(of) >= captured::kTop; }
// What top_of() was called with; `of` itself if it is not the largest values.
constexpr ValuesOf whole_of(ValuesOf of) {
  return is_top(of) ? ValuesOf{static_cast<std::uint8_t>(std::to_underlying(of) - captured::kTop)}
                    : of;
}
constexpr bool is_source(ValuesOf of) {
  const std::uint8_t n = std::to_underlying(whole_of(of));
  return n >= captured::kFirstSource && n < captured::kEndOfSources;
}
// `of` must be a source, or its largest values.
constexpr std::uint8_t source_of(ValuesOf of) {
  return static_cast<std::uint8_t>(std::to_underlying(whole_of(of)) - captured::kFirstSource);
}
// Whether a file may have this number.
constexpr bool is_captured_kind(std::uint64_t n) {
  if (n < captured::kTop) return n < captured::kEndOfSources;
  const std::uint64_t of = n - captured::kTop;
  return of == 0 || (of >= captured::kFirstSource && of < captured::kEndOfSources);
}

}  // namespace tt
