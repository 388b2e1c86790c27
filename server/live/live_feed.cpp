#include "server/live/live_feed.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "api/live/live_events.h"
#include "api/live/live_frames.h"

namespace tt {

LiveMessage text_message(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {.opcode = Opcode::Text, .bytes = {bytes.begin(), bytes.end()}};
}

void LiveFeed::move_to(LivePosition at) {
  at_ = at;
  ops_complete_ = false;
  last_end_.reset();
}

// ---------------------------------------------------------------- tokens

std::optional<LiveMessage> LiveFeed::next_message(const TokenRecord& token) {
  if (token.index != at_.token) return std::nullopt;
  ++at_.token;
  if (!kinds_.token) return std::nullopt;
  return text_message(token.message);
}

void LiveFeed::lose_tokens_before(std::uint32_t token) {
  if (token <= at_.token) return;
  if (kinds_.token) lost_.tokens += token - at_.token;
  at_.token = token;
}

// ---------------------------------------------------------------- recorded step

std::optional<LiveMessage> LiveFeed::next_message(StepRecord& step) {
  if (step.index() != at_.step) return std::nullopt;
  if (kinds_.op && !ops_complete_ && (step.ops() > 0 || at_.op > 0)) return ops_frame(step);
  if (kinds_.routing && at_.routing < step.routing().size()) return routing_frame(step);
  next_step();
  if (!kinds_.step) return std::nullopt;
  return text_message(step.message());
}

void LiveFeed::next_step() {
  at_.step += 1;
  at_.op = at_.routing = 0;
  ops_complete_ = false;
  last_end_.reset();
}

void LiveFeed::lose_steps_before(std::uint32_t step, bool routed) {
  if (step <= at_.step) return;
  const std::uint32_t skipped = step - at_.step;
  if (kinds_.step) lost_.steps += skipped;
  if (kinds_.op) lost_.ops += skipped - (ops_complete_ ? 1 : 0);
  if (kinds_.routing && routed) lost_.routing += skipped;
  move_to({.token = at_.token, .step = step});
}

// Whether the ops already sent (usually while the step ran) match the recorded step. If they
// were sent on an earlier connection, only the timing is checked: times are written twice only
// while a graph is being learned.
bool LiveFeed::matches(const StepRecord& step) const {
  if (at_.op == 0) return true;
  if (at_.op > step.ops()) return false;
  return last_end_ ? step.end(at_.op - 1) == *last_end_ : step.timing() != Timing::Learned;
}

LiveMessage LiveFeed::ops_frame(const StepRecord& step) {
  OpsFrame frame{.subscription = number_,
                 .step = StepId{step.index()},
                 .first = {},
                 .complete = false,
                 .withdrawn = !matches(step),
                 .begin = {},
                 .end = {}};
  if (frame.withdrawn) at_.op = 0;
  frame.first = OpId{at_.op};
  const std::uint32_t rows = std::min(kMaxFrameRows, step.ops() - at_.op);
  for (std::uint32_t op = at_.op; op < at_.op + rows; ++op) {
    frame.begin.push_back(step.begin(op));
    frame.end.push_back(step.end(op));
  }
  at_.op += rows;
  if (rows > 0) last_end_ = frame.end.back();
  frame.complete = ops_complete_ = at_.op == step.ops();
  return {.opcode = Opcode::Binary, .bytes = encode(frame)};
}

LiveMessage LiveFeed::routing_frame(StepRecord& step) {
  const auto rows = step.routing();
  RoutingFrame frame{.subscription = number_,
                     .step = StepId{step.index()},
                     .first = at_.routing,
                     .complete = false,
                     .layer = rows[at_.routing].layer,
                     .token = {},
                     .expert = {},
                     .rank = {},
                     .score = {}};
  for (; at_.routing < rows.size() && frame.token.size() < kMaxFrameRows; ++at_.routing) {
    const RoutingRow& row = rows[at_.routing];
    if (row.layer != frame.layer) break;
    frame.token.push_back(row.token);
    frame.expert.push_back(row.expert);
    frame.rank.push_back(row.rank);
    frame.score.push_back(row.score);
  }
  frame.complete = at_.routing == rows.size();
  return {.opcode = Opcode::Binary, .bytes = encode(frame)};
}

// ---------------------------------------------------------------- running step

std::optional<LiveMessage> LiveFeed::next_message(const StepInFlight& step) {
  const auto done = step.first + static_cast<std::uint32_t>(step.ends.size());
  if (!kinds_.op || step.step.v != at_.step || poll_from() < step.first) return std::nullopt;
  if (at_.op >= done) {
    const std::uint32_t node = step.new_op ? step.new_op->nodes : 0;
    if (std::exchange(last_new_op_, node) == node || node == 0) return std::nullopt;
    return text_message(
        op_event(step.session, step.step, OpId{at_.op}, *step.new_op, step.graph_nodes));
  }
  OpsFrame frame{.subscription = number_,
                 .step = step.step,
                 .first = OpId{at_.op},
                 .complete = false,
                 .withdrawn = false,
                 .begin = {},
                 .end = {}};
  const std::uint32_t rows = std::min(kMaxFrameRows, done - at_.op);
  for (std::uint32_t op = at_.op; op < at_.op + rows; ++op) {
    const std::uint32_t i = op - step.first;
    frame.begin.push_back(op == 0 ? step.first_op : step.ends[i - 1]);
    frame.end.push_back(step.ends[i]);
  }
  at_.op += rows;
  last_end_ = frame.end.back();
  return LiveMessage{.opcode = Opcode::Binary, .bytes = encode(frame)};
}

}  // namespace tt
