// One client's subscription to one session: which of it comes next, as messages.
// A position, not a queue: whoever holds the records asks the feed what to make
// of the one that is next.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/live/live_events.h"
#include "server/door/websocket_handler.h"
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

  // The next message of the record; none when there is nothing (more) in it for
  // this client. A step may have many; behind its last the next step comes.
  std::optional<LiveMessage> next_of(const TokenRecord& token);
  std::optional<LiveMessage> next_of(StepRecord& step);
  // What is new of the step in flight; none while an older step is not done. Has
  // to be looked at from the op before the next: it begins where that one ends.
  std::uint32_t look_from() const { return at_.op == 0 ? 0 : at_.op - 1; }
  std::optional<LiveMessage> next_of(const StepInFlight& step);

  // Goes on at a later token or step: what is left out is lost, and counted. The
  // steps have routing when `routed`.
  void lose_tokens_before(std::uint32_t token);
  void lose_steps_before(std::uint32_t step, bool routed);

 private:
  bool holds(const StepRecord& step) const;
  LiveMessage ops_frame(const StepRecord& step);
  LiveMessage routing_frame(StepRecord& step);
  void next_step();

  std::uint32_t number_;  // names the session in binary frames
  LiveKinds kinds_;
  LivePosition at_;
  bool ops_complete_ = false;     // of the step at_.step
  std::optional<Ns> last_end_{};  // of the op before at_.op; none: sent on an earlier connection
  LiveLosses lost_;
};

}  // namespace tt
