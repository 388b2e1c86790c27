// How the residual stream changes from layer to layer, from a session that captured it: `--capture
// 'l_out|ffn_inp|embd'` (docs/values.md). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Means over the captured tokens. nullopt: what they are computed from was not captured, or the
// architecture has no such part. Norms: square root of the sum of the squares.
struct ResidualLayer {
  LayerId layer;
  std::uint64_t tokens = 0;         // captured after the layer
  std::optional<double> norm{};     // of the stream after the layer
  std::optional<double> mixer{};    // norm of what attention, or what replaces it, adds
  std::optional<double> ffn{};      // norm of what the feed-forward part, or the experts, add
  std::optional<double> change{};   // norm of what the layer adds
  std::optional<double> similar{};  // cosine of the stream before and after the layer
};

struct ResidualTable {
  std::vector<ResidualLayer> layers;  // by number
};

std::expected<ResidualTable, TraceError> residual_stream(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

Fields<ResidualTable> fields_of(const ResidualTable*);

// For a session without it.
inline constexpr const char* kNoCapturedResidual =
    "The session has no residual stream. Record with --capture 'l_out|ffn_inp|embd', \"capture\": "
    "[\"l_out|ffn_inp|embd\"] in the request, or the setting Residual stream of the page.";

}  // namespace tt
