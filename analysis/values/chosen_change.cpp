#include "analysis/values/chosen_change.h"

#include <cmath>
#include <map>
#include <utility>

#include "analysis/values/logit_lens.h"

namespace tt {

namespace {

// By index, the tokens up to `last` that the model's output chose with a probability.
using ChosenTokens = std::map<std::uint32_t, LensToken>;

std::expected<ChosenTokens, TraceError> chosen_tokens(const SessionReader& reader,
                                                      std::uint32_t last,
                                                      const ContinueCheck& keep_going) {
  ChosenTokens chosen;
  // Most sessions have none: their steps need not be read.
  bool any = false;
  const auto looked = reader.for_each_values(StepId{0}, kNone, [&](const StepValues& of) {
    any = !of.outputs.empty();
    return !any;
  });
  if (!looked) return std::unexpected(looked.error());
  if (!any) return chosen;
  auto rows = logit_lens(reader, {.layer = kNoLayer, .page = kAllRows}, keep_going);
  if (!rows) return std::unexpected(rows.error());
  for (LensRow& row : rows->rows)
    if (row.token <= last && row.chosen && row.chosen->probability)
      chosen.emplace(row.token, *std::move(row.chosen));
  return chosen;
}

}  // namespace

std::expected<std::optional<ChosenChange>, TraceError> chosen_change(
    const SessionReader& left, const SessionReader& right, std::uint32_t common,
    const ContinueCheck& keep_going) {
  const auto before = chosen_tokens(left, common, keep_going);
  if (!before) return std::unexpected(before.error());
  if (before->empty()) return std::nullopt;
  const auto after = chosen_tokens(right, common, keep_going);
  if (!after) return std::unexpected(after.error());
  ChosenChange change;
  const auto distance = [](const ChosenChange::At& at) {
    return std::abs(at.right.probability - at.left.probability);
  };
  const auto side = [](const LensToken& token) {
    return ChosenChange::Side{.text = token.text, .probability = *token.probability};
  };
  bool any = false;
  for (const auto& [token, mine] : *before) {
    const auto found = after->find(token);
    if (found == after->end()) continue;
    any = true;
    const ChosenChange::At at{.token = token, .left = side(mine), .right = side(found->second)};
    if (mine.id != found->second.id) {
      change.other = at;
      continue;
    }
    ++change.tokens;
    if (distance(at) == 0) continue;
    if (!change.first) change.first = at;
    if (!change.largest || distance(at) > distance(*change.largest)) change.largest = at;
  }
  return any ? std::optional(std::move(change)) : std::nullopt;
}

}  // namespace tt
