// What the model would have said after each layer, and how likely the tokens were that it chose,
// from a session with `--capture lens` (docs/values.md). Pure functions, any thread.
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

struct LensToken {
  std::int32_t id = 0;
  std::string text;  // bytes; at most 32
  std::optional<double> probability;
};

// What was said of one token before it was chosen, after one layer or by the model.
struct LensRow {
  std::uint32_t token = 0;   // index in the session
  StepId step;               // after which it was chosen
  LayerId layer = kNoLayer;  // kNoLayer: the model's output
  std::optional<double> entropy;
  std::optional<LensToken> chosen;    // nullopt: the session ended before a token was chosen
  std::optional<std::uint64_t> rank;  // of the chosen token, from 0
  std::vector<LensToken> likely;      // the most likely one first
};

struct LensQuery {
  std::optional<LayerId> layer{};  // kNoLayer: the output; nullopt: all
  std::optional<std::uint32_t> token{};
  PageRange page{};
};

// In the order of tokens and layers; the output is last. Errors: NotFound, the session has no such
// layer or token.
std::expected<Page<LensRow>, TraceError> logit_lens(const SessionReader& reader,
                                                    const LensQuery& query,
                                                    const ContinueCheck& keep_going = never_cancel);

Fields<Page<LensRow>> fields_of(const Page<LensRow>*);

// For a session without it, or without what was asked for.
inline constexpr const char* kNoCapturedLens =
    "The session has no logit lens. Record with --capture lens, "
    "\"capture\": [\"lens\"] in the request, or the setting Logit lens of the page.";

}  // namespace tt
