// Who listens to what over the live WebSocket, and what each is told: the rules
// of api/live.md. One thread (LiveHub's); acts through ports, so that a test can
// take the place of the door, of the engine and of the files.
//
// Nothing is queued for a client. Of each session the newest is kept in one log,
// bounded, and each subscription is a position (LiveFeed): flush() sends what
// comes next while the client has room, from the log or, when it is further
// behind, from a piece of the session's file, one piece at a time per client.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/live/live_events.h"
#include "server/door/websocket_handler.h"
#include "server/live/live_archive.h"
#include "server/live/live_feed.h"
#include "server/live/live_records.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

// How much of a session there is, whether or not it was told.
struct LiveExtent {
  std::uint32_t tokens = 0;  // with the rest of the answer
  std::uint32_t steps = 0;
  std::uint32_t tokens_written = 0;  // in the file for sure, if the session is recorded
};

struct LivePorts {
  using Clock = std::chrono::steady_clock;
  // Queues a message for a client; false: no room, or the client is gone.
  std::function<bool(ClientId, Opcode, std::span<const std::byte>)> send;
  std::function<void(ClientId, std::uint16_t code)> close;
  // Hears nothing more of a client for so long.
  std::function<void(ClientId, std::chrono::milliseconds)> pause;
  std::function<std::optional<JobStatus>(const std::string& session)> status;
  // Of the session's step in flight, ops from `from_op` on; empty: none of it runs.
  std::function<std::optional<StepInFlight>(const std::string& session, std::uint32_t from_op)>
      in_flight;
  std::function<void(ArchiveRequest)> read;  // answered by LiveClients::piece()
  // How much of a session there is now, also what nobody heard of.
  std::function<LiveExtent(const std::string& session)> extent;
  std::function<Clock::time_point()> now = &Clock::now;
};

struct LiveLimits {
  std::size_t window = 512u << 10;         // bytes on the way to a client, unacknowledged
  std::size_t subscriptions = 256;         // of one client
  std::uint32_t commands = 64;             // of one client, at once
  std::uint32_t commands_per_second = 50;  // after these; what is said faster is heard later
  std::size_t log_bytes = 16u << 20;       // of all sessions' logs
  std::size_t session_log_bytes = 4u << 20;
};

class LiveClients {
 public:
  explicit LiveClients(LivePorts ports, LiveLimits limits = {})
      : ports_(std::move(ports)), limits_(limits) {}

  void opened(ClientId client);
  void said(ClientId client, std::string_view text);
  void closed(ClientId client);

  void state(const JobStatus& status);
  void progress(const JobStatus& status);
  void token(const std::string& session, const Token& token, std::string_view piece);
  void rest(const std::string& session, std::uint32_t index, std::string_view text);
  void step(const std::string& session, Step step, KnownGraphPtr graph);
  // After the above: what of it never arrived is in the file, or lost.
  void reached(const std::string& session, const LiveExtent& extent);
  void piece(ArchivePiece piece);

  // Sends what there is to clients that have room. After any of the above.
  void flush();
  // Sends what is new of the steps in flight, and asks again for what was not yet written.
  void look();
  // Whether look() may have something to do without an event before it.
  bool wants_looks() const;

  struct Counts {
    std::size_t subscriptions = 0;
    std::uint64_t lost = 0;  // tokens, steps, ops and routing of clients, connected or gone
    std::size_t log_bytes = 0;
  };
  Counts counts() const;

 private:
  static constexpr std::uint16_t kPolicyViolation = 1008;  // of WebSocket
  static constexpr LiveKinds kNothing{};

  // One that waits or runs, or that has ended while someone still reads it.
  struct Session {
    JobStatus status;
    std::uint64_t states = 0, progresses = 0;  // how often they changed
    bool heard = false;                        // someone subscribed to it
    LiveLog log;                               // while someone did
    LiveExtent extent;
    bool routed = false;        // its graphs route
    StepId looked_at;           // by the last look: most looks go on where it ended
    std::string last_message;   // not empty: it has ended
    bool rest_unknown = false;  // extent counts a rest of the answer that may not be there
  };
  // The archive's part of a subscription that is behind.
  struct Reading {
    std::uint64_t ticket = 0;   // of the piece that was asked for; 0: none
    LiveKinds kinds;            // asked for
    LivePosition up_to;         // from here on memory had it
    std::uint32_t written = 0;  // tokens that were in the file for sure when it was asked for
    std::shared_ptr<AnswerSoFar> answer;
    std::deque<LiveRecord> piece;  // what came and was not yet sent
    bool pausing = false;          // nothing came: not written yet; look() asks again
  };
  struct Subscription {
    explicit Subscription(std::uint32_t number) : feed(number) {}
    LiveFeed feed;
    Thin thin = Thin::None;
    bool of_all = false;               // made by a subscription to "*"
    std::optional<Subscribe> opening;  // the archive is asked whether there is such a session
    bool blocked = false;              // there was no room for what comes next
    std::uint64_t states_told = 0, progresses_told = 0;
    LiveLosses lost_told;
    Reading reading;
  };
  struct Waiting {
    std::string session;
    LiveMessage message;
  };
  struct Client {
    std::optional<Subscribe> all;
    std::uint64_t sessions_lost = 0, sessions_lost_told = 0;  // of "*"
    std::uint32_t numbers = 0;                                // given so far
    std::map<std::string, Subscription> subscriptions;
    std::string served;                 // the last one; the next turn begins behind it
    std::uint64_t reading_ticket = 0;   // one piece at a time; 0: none
    std::uint64_t sent = 0, acked = 0;  // bytes of all messages
    std::optional<Waiting> waiting;     // the next message, which had no room
    double commands = 0;                // may be said at once
    LivePorts::Clock::time_point counted_at;
    int strikes = 0;
    bool closing = false;
  };
  enum class Turn { Sent, Nothing, NoRoom, Ended };

  // What clients say (live_commands.cpp).
  void on(ClientId id, Client& client, const Subscribe& command);
  void on(ClientId id, Client& client, const Unsubscribe& command);
  void on(ClientId id, Client& client, const Acknowledge& command);
  void subscribe_all(ClientId id, Client& client, const Subscribe& command);
  void adopt(ClientId id, Client& client, const std::string& name, Session& session,
             const std::optional<LivePosition>& from);
  void settle(ClientId id, Client& client, Session& session, Subscription& to,
              const Subscribe& command);
  void open(ClientId id, Subscription& to, const Subscribe& command);
  void opened(ClientId id, Client& client, const std::string& name, Subscription& to,
              const ArchivePiece& piece);
  Session& session_of(const JobStatus& status);
  void count_command(ClientId id, Client& client);
  void strike(ClientId id, Client& client, int weight, std::string_view code,
              std::string_view detail);
  void answer(ClientId id, Client& client, std::string_view text);

  // What they are told (live_clients.cpp).
  bool has_room(const Client& client, std::size_t bytes) const;
  void send(ClientId id, Client& client, const LiveMessage& message);
  bool deliver(ClientId id, Client& client, const std::string& session, LiveMessage message);
  void flush(ClientId id, Client& client);
  Turn next(ClientId id, Client& client, const std::string& name, Subscription& to);
  std::optional<LiveMessage> next_news(const std::string& name, const Session& session,
                                       Subscription& to);
  std::optional<LiveMessage> next_record(Session& session, Subscription& to);
  void skip_to_newest(Session& session, Subscription& to);
  void look(const std::string& name, Session& session);
  void end(Client& client, const std::string& name);
  void trim_logs();
  void forget_unheard();

  // What is read for them (live_reading.cpp).
  LiveKinds missing(const Session& session, const Subscription& to) const;
  void ask(ClientId id, Client& client, const std::string& name, const Session& session,
           Subscription& to, LiveKinds kinds);
  std::optional<LiveMessage> next_of_piece(const Session& session, Subscription& to);
  void lose_what_is_nowhere(Session& session, Subscription& to, bool recorded);

  LivePorts ports_;
  LiveLimits limits_;
  std::map<ClientId, Client> clients_;
  std::map<std::string, Session> sessions_;
  std::uint64_t tickets_ = 0;
  std::uint64_t lost_before_ = 0;  // by subscriptions that are gone
};

}  // namespace tt
