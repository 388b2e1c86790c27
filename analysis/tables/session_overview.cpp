#include "analysis/tables/session_overview.h"

#include <format>

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

std::string memory_budget_text(const SessionInfo& info) {
  const std::string_view state = info.fact("memory.state"), message = info.fact("memory.message");
  if (state.empty()) return "";
  return message.empty() ? std::string(state) : std::format("{}: {}", state, message);
}

}  // namespace tt
