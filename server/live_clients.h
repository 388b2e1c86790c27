// Who listens to what over the live WebSocket, and what each is told: the rules
// of api/live.md. One thread (LiveHub's); sends through ports, so that a test
// can take the door's place.
//
// Every op of every step is sent exactly once, in order: ops of the step in
// flight when look() sees them, the rest when the step is written. A client
// that subscribes in the middle gets whole steps from the one in flight on.
// A message that the door has no room for is lost, counted and told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/live_events.h"
#include "server/door/websocket_handler.h"
#include "tracer/generation_queue.h"

namespace tt {

struct LivePorts {
  // Queues a message for a client; false: no room, or the client is gone.
  std::function<bool(ClientId, Opcode, std::span<const std::byte>)> send;
  std::function<std::optional<JobStatus>(const std::string& session)> status;
  // Of the session's step in flight, ops from `from_op` on; empty: none of it runs.
  std::function<std::optional<StepInFlight>(const std::string& session, std::uint32_t from_op)>
      in_flight;
  std::function<std::uint32_t(const std::string& session)> n_layers;  // of the model it runs on
};

class LiveClients {
 public:
  explicit LiveClients(LivePorts ports) : ports_(std::move(ports)) {}

  void opened(ClientId client);
  void said(ClientId client, std::string_view text);
  void closed(ClientId client) { clients_.erase(client); }

  void state(const JobStatus& status);
  void progress(const JobStatus& status);
  void token(const std::string& session, const Token& token, std::string_view piece);
  void text(const std::string& session, std::string_view rest);
  // `step` is null when nobody was connected as it was written, `graph` when it has no template.
  void step(const std::string& session, StepId id, const Step* step, const KnownGraph* graph);
  // Events that never arrived here, of any session: each listener is told.
  void missed(std::uint64_t events);

  // Sends what is new of the step in flight, and losses that could not be told before.
  void look();
  // Whether look() may have something to do without an event before it.
  bool wants_looks() const;

 private:
  struct Subscription {
    std::uint32_t number = 0;  // names the session in binary frames
    LiveKinds kinds;
    bool of_all = false;  // made by a subscription to "*"
    bool ended = false;   // kept only until its losses are told
    JobState told = JobState::Queued;
    std::uint64_t lost = 0, lost_told = 0;
    StepId next_step;            // the first whose ops were not all sent
    std::uint32_t ops_sent = 0;  // of next_step
    Ns last_end{};               // of op ops_sent - 1
  };
  struct Client {
    std::optional<LiveKinds> all;
    std::uint32_t numbers = 0;  // given so far
    std::map<std::string, Subscription> sessions;
  };
  struct Session {
    JobState state = JobState::Queued;
    StepId next_step;  // steps before it are written
    StepId looked_at;  // by the last look: most looks go on where it ended
  };

  bool send(ClientId client, std::string_view text);
  // Tells losses first; what has no room is one more.
  void send(ClientId client, const std::string& session, Subscription& to, std::string_view text);
  bool tell_losses(ClientId client, const std::string& session, Subscription& to);
  void send_state(ClientId client, Subscription& to, const JobStatus& status);
  void send_rest(ClientId client, const std::string& session, Subscription& to, StepId id,
                 const Step& step, bool timed);
  void send_new(ClientId client, Subscription& to, const StepInFlight& flight);

  void look(const std::string& session, Session& live);

  void subscribe(ClientId id, Client& client, const LiveCommand& command);
  void subscribe_all(ClientId id, Client& client, LiveKinds kinds);
  void unsubscribe(ClientId id, Client& client, const std::string& session);
  Subscription& adopt(ClientId id, Client& client, const std::string& session);
  void forget_ended();

  template <class Visit>
  void each(const std::string& session, Visit visit);

  LivePorts ports_;
  std::map<ClientId, Client> clients_;
  std::map<std::string, Session> sessions_;  // queued and running ones
};

}  // namespace tt
