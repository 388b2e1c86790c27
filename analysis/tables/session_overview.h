// A session as one row of the session list.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "analysis/tables/token_speed.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct SessionOverview {
  SessionInfo info;
  LossCounters losses;
  std::uint32_t steps = 0, tokens = 0;
  TokenSpeed speed;
  friend bool operator==(const SessionOverview&, const SessionOverview&) = default;
};

// `so_far`: of token_speed().
std::expected<SessionOverview, TraceError> session_overview(const SessionReader& reader,
                                                            RequestsSoFar* so_far = nullptr);

// The program that `tt attach` recorded.
struct AttachedProgram {
  std::string name;  // "llama-server"
  std::string text;  // "llama-server, process 4711, ggml 0.27.0"
};
// nullopt: tensor-trace recorded itself.
std::optional<AttachedProgram> attached_program(const SessionInfo& info);

// Why the session ended, as a phrase: "the model ended its answer (end-of-generation token)". With
// the error, if there was one. Empty: not recorded.
std::string end_text(const SessionInfo& info);

// What the memory budget did at the end of the session: "active: 200 MiB stay in memory, ...".
// Empty: there was none.
std::string memory_budget_text(const SessionInfo& info);

}  // namespace tt
