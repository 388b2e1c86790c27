// Text messages of the live WebSocket (api/live.md) and the values in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/tables/step_summary.h"
#include "api/json/debug_json.h"
#include "tracer/format/model/new_graph_op.h"
#include "tracer/request/job.h"

namespace tt {

// Kinds of records of a subscription. State and loss events are always sent.
struct LiveKinds {
  bool token = false, step = false, op = false, routing = false, progress = false;
  bool any_of_step() const { return step || op || routing; }
  friend bool operator==(const LiveKinds&, const LiveKinds&) = default;
};

// Position of the next record of a session: token index, step index, and within that step the
// op index and routing row. Remaining answer text that belongs to no token has the index after
// the last token.
struct LivePosition {
  std::uint32_t token = 0, step = 0, op = 0, routing = 0;
  friend bool operator==(const LivePosition&, const LivePosition&) = default;
};

// Policy for slow clients. None: send everything, later. Latest: skip to the newest complete
// step.
enum class Thin : std::uint8_t { None, Latest };

struct Subscribe {
  std::string session;  // an id, or "*": all current and future sessions
  LiveKinds kinds;
  std::optional<LivePosition> from{};  // nullopt: start with new records
  Thin thin = Thin::None;
  friend bool operator==(const Subscribe&, const Subscribe&) = default;
};
struct Unsubscribe {
  std::string session;
  friend bool operator==(const Unsubscribe&, const Unsubscribe&) = default;
};
// Total bytes of all messages that the client has received.
struct Acknowledge {
  std::uint64_t bytes = 0;
  friend bool operator==(const Acknowledge&, const Acknowledge&) = default;
};
// For a request that can be stopped (docs/debug.md).
struct DebugSession {
  std::string session;
  std::optional<DebugCommand> command;  // as the body of its REST route; nullopt: only its state
  friend bool operator==(const DebugSession&, const DebugSession&) = default;
};
using LiveCommand = std::variant<Subscribe, Unsubscribe, Acknowledge, DebugSession>;

// The error describes the valid commands.
std::expected<LiveCommand, std::string> parse_live_command(std::string_view text);

// Records that a client did not receive since it subscribed. `ops` and `routing` count steps.
struct LiveLosses {
  std::uint64_t tokens = 0, steps = 0, ops = 0, routing = 0;
  friend bool operator==(const LiveLosses&, const LiveLosses&) = default;
};

// State of a session; also of sessions recorded before this server started.
struct LiveState {
  std::string_view state;  // "queued", "running", "done", "cancelled", "failed", "recovered"
  std::uint32_t position = 0;
  std::string_view error;
  std::optional<std::string_view> stopped{};  // of a request that may stop: where; empty: it runs
  std::string_view stopped_ahead{};  // of a queued request: where the running one is stopped
};

// `window`: maximum unacknowledged bytes.
std::string hello_event(std::size_t window);
// The list of sessions has changed, or the figures of one in it.
std::string list_event();
std::string subscribed_event(const Subscribe& what, std::uint32_t number);
std::string unsubscribed_event(std::string_view session);
std::string debug_event(std::string_view session, const DebugState& state);
// `session` may be empty.
std::string error_event(std::string_view code, std::string_view session, std::string_view detail);
std::string state_event(std::string_view session, const LiveState& state);
std::string state_event(const JobStatus& status);
std::string progress_event(const JobStatus& status);
// The op that runs, of a graph that is seen for the first time. `graph_nodes`: of the largest graph
// of the context; 0: unknown.
std::string op_event(std::string_view session, StepId step, OpId number, const NewGraphOp& op,
                     std::uint32_t graph_nodes);
// `text`: the text that this token adds to the answer.
std::string token_event(std::string_view session, const Token& token, std::string_view text);
// Remaining answer text that belongs to no token. `index`: the number of tokens.
std::string text_event(std::string_view session, std::uint32_t index, std::string_view text);
std::string step_event(std::string_view session, const StepSummary& step);
std::string loss_event(std::string_view session, const LiveLosses& losses);
// Number of sessions that a subscription to "*" had no room for.
std::string sessions_loss_event(std::uint64_t sessions);

}  // namespace tt
