#include "analysis/values/logit_lens.h"
#include "tracer/format/model/lens_values.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/common/session_layers.h"
#include "analysis/fields/page_fields.h"
#include "analysis/values/walk_values.h"

namespace tt {

namespace {

// The values of a file are any numbers. nullopt: not a whole number that fits.
template <class Number>
std::optional<Number> whole(float value, float min, float max) {
  if (!(value >= min && value <= max) || value != std::floor(value)) return std::nullopt;
  return static_cast<Number>(value);
}
constexpr float kMaxId = 1U << 24;  // up to here every whole number is a float

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// A row with a token, its probability and its text. nullopt: it has no token.
std::optional<LensToken> token_of(std::span<const float> row) {
  const auto id = whole<std::int32_t>(row[0], 0, kMaxId);
  if (!id) return std::nullopt;
  LensToken token{.id = *id, .text = {}, .probability = finite(std::exp(double{row[1]}))};
  for (const float value : row.subspan(2)) {
    const auto byte = whole<std::uint8_t>(value, 1, 255);
    if (!byte) break;
    token.text += static_cast<char>(*byte);
  }
  return token;
}

// nullopt: not in the form of kLensValues.
std::optional<LensRow> row_of(const OutputValues& values) {
  const auto [width, rows, deep, deeper] = values.ne;
  if (values.of != kLensValues || width < 2 || rows < 2 || deep != 1 || deeper != 1)
    return std::nullopt;
  const auto at = [&](std::uint64_t row) {
    return std::span(values.values).subspan(row * width, width);
  };
  LensRow row;
  row.entropy = finite(double{at(0)[1]});
  row.chosen = token_of(at(1));
  if (row.chosen) row.rank = whole<std::uint64_t>(at(0)[0], 0, kMaxId);
  for (std::uint64_t i = 2; i < rows; ++i)
    if (auto token = token_of(at(i))) row.likely.push_back(*std::move(token));
  return row;
}

// Whether the session has the layer and the token that the query names.
std::expected<void, TraceError> check_lens_query(const SessionReader& reader,
                                                 const LensQuery& query) {
  if (query.layer)
    if (auto there = validate_layers(reader, LayerSet::one(*query.layer)); !there) return there;
  const auto tokens = reader.token_count();
  if (!tokens) return std::unexpected(tokens.error());
  if (!query.token || *query.token < *tokens) return {};
  return std::unexpected(TraceError{TraceError::Kind::NotFound,
                                    std::format("The session has no token {}: it has {}, numbered "
                                                "from 0.",
                                                *query.token, counted(*tokens, "token"))});
}

}  // namespace

std::expected<Page<LensRow>, TraceError> logit_lens(const SessionReader& reader,
                                                    const LensQuery& query,
                                                    const ContinueCheck& keep_going) {
  if (auto there = check_lens_query(reader, query); !there) return std::unexpected(there.error());
  Page<LensRow> page;
  const auto add = [&](const Step& step, const OutputValues& values, LayerId layer) {
    const std::uint32_t token = step.first_token + step.n_tokens;
    if ((query.layer && *query.layer != layer) || (query.token && *query.token != token)) return;
    auto row = row_of(values);
    if (!row || !query.page.contains(page.total++)) return;
    row->token = token;
    row->step = step.id;
    row->layer = layer;
    page.rows.push_back(*std::move(row));
  };
  const auto walked = walk_values(
      reader, keep_going, [&](const GraphTemplate& graph, const Step& step, const StepValues& of) {
        for (const OutputValues& values : of.outputs) add(step, values, graph.op(values.op).layer);
      });
  if (!walked) return std::unexpected(walked.error());
  return page;
}

static Fields<LensToken> fields_of(const LensToken*) {
  return Fields<LensToken>("LensToken")
      .add("id", "in the vocabulary", &LensToken::id)
      .add("text", "its first 32 bytes", &LensToken::text)
      .add("probability", "", &LensToken::probability, {.null = "not a number"});
}

static Fields<LensRow> fields_of(const LensRow*) {
  return Fields<LensRow>("LensRow")
      .add("token", "index in the session of the token that was chosen", &LensRow::token)
      .add("step", "that evaluated the token before it", &LensRow::step)
      .add("layer", "after which the model would have said this; null: its output", &LensRow::layer)
      .add("entropy", "of the probabilities of all tokens, in bits", &LensRow::entropy,
           {.null = "not a number"})
      .add("chosen", "the token that was chosen, with its probability here", &LensRow::chosen,
           {.null = "the session ended before"})
      .add("rank", "of the chosen token: 0, it is the most likely one", &LensRow::rank,
           {.null = "no token was chosen"})
      .add("most_likely", "the token that the model would have said",
           [](const LensRow& row) {
             return row.likely.empty() ? std::nullopt : std::optional(row.likely.front());
           },
           {.null = "not known"})
      .add("likely", "the 10 most likely tokens, the most likely one first", &LensRow::likely);
}

Fields<Page<LensRow>> fields_of(const Page<LensRow>*) { return page_fields<LensRow>("LogitLens"); }

}  // namespace tt
