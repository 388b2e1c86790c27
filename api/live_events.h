// Text messages of the live WebSocket (api/live.md), as the values they carry.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "analysis/step_summary.h"
#include "tracer/job.h"

namespace tt {

// What a client wants to hear of a session; states and losses always come.
struct LiveKinds {
  bool token = false, step = false, op = false, progress = false;
  friend bool operator==(const LiveKinds&, const LiveKinds&) = default;
};

struct LiveCommand {
  enum class Type { Subscribe, Unsubscribe } type = Type::Subscribe;
  std::string session;  // an id, or "*": all, also those to come
  LiveKinds kinds;      // of Subscribe
  friend bool operator==(const LiveCommand&, const LiveCommand&) = default;
};

// The error says what a command looks like.
std::expected<LiveCommand, std::string> parse_live_command(std::string_view text);

std::string hello_event();
std::string subscribed_event(std::string_view session, LiveKinds kinds, std::uint32_t number);
std::string unsubscribed_event(std::string_view session);
std::string error_event(std::string_view code, std::string_view detail);
std::string state_event(const JobStatus& status);
std::string progress_event(const JobStatus& status);
// `text`: what the answer grows by.
std::string token_event(std::string_view session, const Token& token, std::string_view text);
// The rest of an answer, which belongs to no new token.
std::string text_event(std::string_view session, std::string_view text);
std::string step_event(std::string_view session, const StepSummary& step);
// `frames`: messages about this session that the client did not get, since it subscribed.
std::string loss_event(std::string_view session, std::uint64_t frames);

}  // namespace tt
