#include "analysis/tables/session_overview.h"

namespace tt {

std::expected<SessionOverview, TraceError> session_overview(const SessionReader& reader) {
  auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto losses = reader.losses();
  if (!losses) return std::unexpected(losses.error());
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  const auto tokens = reader.token_count();
  if (!tokens) return std::unexpected(tokens.error());
  return SessionOverview{
      .info = *std::move(info), .losses = *losses, .steps = *steps, .tokens = *tokens};
}

}  // namespace tt
