// One client's subscription to one session: converts records to the messages that come next.
// It holds a position, not a queue: the owner of the records passes the next record to the
// feed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/live/live_events.h"
#include "server/frontend/websocket_handler.h"
#include "server/live/live_records.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

struct LiveMessage {
  Opcode opcode = Opcode::Text;
  std::vector<std::byte> bytes;
};
LiveMessage text_message(std::string_view text);

class LiveFeed {
 public:
  explicit LiveFeed(std::uint32_t number) : number_(number) {}

  std::uint32_t number() const { return number_; }
  const LivePosition& at() const { return at_; }
  const LiveLosses& lost() const { return lost_; }
  const LiveKinds& kinds() const { return kinds_; }
  void set_kinds(LiveKinds kinds) { kinds_ = kinds; }
  void move_to(LivePosition at);

  // The next message of the record; nullopt when it has no (more) messages for this client. A
  // step can have many messages; after the last one the position moves to the next step.
  std::optional<LiveMessage> next_message(const TokenRecord& token);
  std::optional<LiveMessage> next_message(StepRecord& step);
  // New ops of the running step; nullopt while an older step is incomplete. The snapshot must
  // start at poll_from(), one op before the next: its end is the begin of the next op.
  std::uint32_t poll_from() const { return at_.op == 0 ? 0 : at_.op - 1; }
  std::optional<LiveMessage> next_message(const StepInFlight& step);

  // Continues at a later token or step; skipped records are counted as lost. `routed`: the
  // steps have routing records.
  void lose_tokens_before(std::uint32_t token);
  void lose_steps_before(std::uint32_t step, bool routed);

 private:
  bool matches(const StepRecord& step) const;
  LiveMessage ops_frame(const StepRecord& step);
  LiveMessage routing_frame(StepRecord& step);
  void next_step();

  std::uint32_t number_;  // identifies the session in binary frames
  LiveKinds kinds_;
  LivePosition at_;
  bool ops_complete_ = false;     // all ops of step at_.step were sent
  std::optional<Ns> last_end_{};  // of the op before at_.op; nullopt: sent on an earlier connection
  std::uint32_t last_new_op_ = 0;  // NewGraphOp::nodes of the last one that was sent
  LiveLosses lost_;
};

}  // namespace tt
