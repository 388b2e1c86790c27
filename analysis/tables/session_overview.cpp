#include "analysis/tables/session_overview.h"

#include <format>

namespace tt {

std::expected<SessionOverview, TraceError> session_overview(const SessionReader& reader,
                                                            RequestsSoFar* so_far) {
  auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto losses = reader.losses();
  if (!losses) return std::unexpected(losses.error());
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  const auto tokens = reader.token_count();
  if (!tokens) return std::unexpected(tokens.error());
  const auto speed = token_speed(reader, so_far);
  if (!speed) return std::unexpected(speed.error());
  return SessionOverview{.info = *std::move(info),
                         .losses = *losses,
                         .steps = *steps,
                         .tokens = *tokens,
                         .speed = *speed};
}

std::optional<AttachedProgram> attached_program(const SessionInfo& info) {
  const std::string_view process = info.fact("attach.pid");
  if (process.empty()) return std::nullopt;
  std::string name(info.fact("attach.program"));
  if (name.empty()) {  // a file of an older version
    const std::string_view command = info.fact("attach.command");
    const std::string_view program = command.substr(0, command.find(' '));
    name = program.substr(program.rfind('/') + 1);
  }
  AttachedProgram program{.name = name, .text = std::format("{}, process {}", name, process)};
  if (const std::string_view version = info.fact("library.ggml"); !version.empty())
    program.text += std::format(", ggml {}", version);
  return program;
}

std::string end_text(const SessionInfo& info) {
  const std::string_view reason = info.fact("result.stop_reason");
  const auto with_error = [&](std::string text) {
    return info.error.empty() ? text : text + ": " + info.error;
  };
  if (info.state == SessionState::Running) return "not yet: it is running";
  if (info.state == SessionState::Recovered)
    return with_error("interrupted: the program that recorded it ended first");
  if (reason == "eos") return "the model ended its answer (end-of-generation token)";
  if (reason == "stop") return "a stop string occurred";
  if (reason == "length") {
    const std::string_view most = info.fact("request.max_tokens");
    return most.empty() ? "the maximum number of tokens was reached"
                        : std::format("the maximum number of tokens ({}) was reached", most);
  }
  if (reason == "context_full") return "the context was full; a larger one (-c) has more room";
  if (reason == "embedded") return "the embedding was complete";
  if (reason == "cancelled" || info.state == SessionState::Cancelled) return "cancelled";
  if (reason == "error" || info.state == SessionState::Failed) return with_error("error");
  return "";
}

std::string memory_budget_text(const SessionInfo& info) {
  const std::string_view state = info.fact("memory.state"), message = info.fact("memory.message");
  if (state.empty()) return "";
  return message.empty() ? std::string(state) : std::format("{}: {}", state, message);
}

}  // namespace tt
