// Text messages of the live WebSocket (api/live.md), as the values they carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/tables/step_summary.h"
#include "tracer/request/job.h"

namespace tt {

// What a client wants to hear of a session; states and losses always come.
struct LiveKinds {
  bool token = false, step = false, op = false, routing = false, progress = false;
  bool of_steps() const { return step || op || routing; }
  friend bool operator==(const LiveKinds&, const LiveKinds&) = default;
};

// What of a session comes next: indices of a token and a step, and of that step
// an op and a row of routing. The rest of an answer, which belongs to no token,
// counts as the token after the last.
struct LivePosition {
  std::uint32_t token = 0, step = 0, op = 0, routing = 0;
  friend bool operator==(const LivePosition&, const LivePosition&) = default;
};

// What to do for a client that cannot keep up: send everything, later, or skip
// to the newest whole step.
enum class Thin : std::uint8_t { None, Latest };

struct Subscribe {
  std::string session;  // an id, or "*": all, also those to come
  LiveKinds kinds;
  std::optional<LivePosition> from{};  // none: what comes next
  Thin thin = Thin::None;
  friend bool operator==(const Subscribe&, const Subscribe&) = default;
};
struct Unsubscribe {
  std::string session;
  friend bool operator==(const Unsubscribe&, const Unsubscribe&) = default;
};
// The bytes of all messages that the client received so far.
struct Acknowledge {
  std::uint64_t bytes = 0;
  friend bool operator==(const Acknowledge&, const Acknowledge&) = default;
};
using LiveCommand = std::variant<Subscribe, Unsubscribe, Acknowledge>;

// The error says what a command looks like.
std::expected<LiveCommand, std::string> parse_live_command(std::string_view text);

// What a client did not get since it subscribed. Ops and routing: of how many steps.
struct LiveLosses {
  std::uint64_t tokens = 0, steps = 0, ops = 0, routing = 0;
  friend bool operator==(const LiveLosses&, const LiveLosses&) = default;
};

// How a session is doing; also one that was recorded before this server ran.
struct LiveState {
  std::string_view state;  // "queued", "running", "done", "cancelled", "failed", "recovered"
  std::uint32_t position = 0;
  std::string_view error;
};

// `window`: how many bytes may be on the way unacknowledged.
std::string hello_event(std::size_t window);
std::string subscribed_event(const Subscribe& what, std::uint32_t number);
std::string unsubscribed_event(std::string_view session);
// `session` empty: about none.
std::string error_event(std::string_view code, std::string_view session, std::string_view detail);
std::string state_event(std::string_view session, const LiveState& state);
std::string state_event(const JobStatus& status);
std::string progress_event(const JobStatus& status);
// `text`: what the answer grows by.
std::string token_event(std::string_view session, const Token& token, std::string_view text);
// The rest of an answer, which belongs to no token; `index`: how many tokens there are.
std::string text_event(std::string_view session, std::uint32_t index, std::string_view text);
std::string step_event(std::string_view session, const StepSummary& step);
std::string loss_event(std::string_view session, const LiveLosses& losses);
// Sessions that a subscription to "*" had no room for.
std::string sessions_loss_event(std::uint64_t sessions);

}  // namespace tt
