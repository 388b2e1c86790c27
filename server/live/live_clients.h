// Subscriptions of the live WebSocket clients and what each client receives, following
// api/live.md. Runs on one thread (LiveHub). All I/O goes through callbacks so that tests can
// replace the HTTP front end, the engine and the files.
//
// There is no queue per client. Each session has one bounded log of its newest records, and
// each subscription is a position (LiveFeed). flush() sends the next records while the client
// has room: from the log, or from the session file if the position is older than the log. File
// reads happen in batches, one batch at a time per client.
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

#include "api/json/debug_json.h"
#include "api/json/problem.h"
#include "api/live/live_events.h"
#include "server/frontend/websocket_handler.h"
#include "server/live/backfill_reader.h"
#include "server/live/live_feed.h"
#include "server/live/live_records.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

// Number of tokens and steps that a session has, whether or not they reached the hub.
struct LiveExtent {
  std::uint32_t tokens = 0;  // including the remaining answer text
  std::uint32_t steps = 0;
  std::uint32_t tokens_written = 0;  // known to be in the file, if the session is recorded
};

// The answer of a server without requests that can be stopped.
OrProblem<DebugState> no_debugger(const std::string& session,
                                  const std::optional<DebugCommand>& command);

struct LiveCallbacks {
  using Clock = std::chrono::steady_clock;
  // Carries out a command for a request that can be stopped, or only says what its state is.
  using Debug = std::function<OrProblem<DebugState>(const std::string& session,
                                                    const std::optional<DebugCommand>& command)>;
  // Queues a message for a client. Returns false if there is no room or the client has
  // disconnected.
  std::function<bool(ClientId, Opcode, std::span<const std::byte>)> send;
  std::function<void(ClientId, std::uint16_t code)> close;
  // Stops reading from a client for the given time.
  std::function<void(ClientId, std::chrono::milliseconds)> pause;
  std::function<std::optional<JobStatus>(const std::string& session)> status;
  // The running step of the session, ops from `from_op` on; nullopt if no step is running.
  std::function<std::optional<StepInFlight>(const std::string& session, std::uint32_t from_op)>
      in_flight;
  std::function<void(BackfillRequest)> read;  // completes with LiveClients::batch()
  // Current totals of a session, including records that did not reach the hub.
  std::function<LiveExtent(const std::string& session)> extent;
  Debug debug = no_debugger;
  std::function<Clock::time_point()> now = &Clock::now;
};

struct LiveLimits {
  std::size_t window = 512u << 10;           // unacknowledged bytes per client
  std::size_t subscriptions = 256;           // per client
  std::uint32_t commands = 64;               // burst size per client
  std::uint32_t commands_per_second = 50;    // sustained rate; faster clients are paused
  std::size_t log_bytes = 16u << 20;         // total of all session logs
  std::size_t session_log_bytes = 4u << 20;  // of each log
};

class LiveClients {
 public:
  explicit LiveClients(LiveCallbacks callbacks, LiveLimits limits = {})
      : callbacks_(std::move(callbacks)), limits_(limits) {}

  // What a client asks for when it connects.
  struct Wishes {
    bool batches = false;  // the text messages of a turn as one JSON array
    bool list = false;     // to be told of changes of the list of sessions
  };
  void opened(ClientId client, Wishes wishes);
  void opened(ClientId client) { opened(client, {}); }
  void handle_message(ClientId client, std::string_view text);
  void closed(ClientId client);

  void list_changed();
  void state(const JobStatus& status);
  void progress(const JobStatus& status);
  void token(const std::string& session, const Token& token, std::string_view text);
  void rest(const std::string& session, std::uint32_t index, std::string_view text);
  void step(const std::string& session, Step step, KnownGraphPtr graph);
  // Call after the functions above. Records that were counted in `extent` but never arrived
  // are read from the file, or lost.
  void update_extent(const std::string& session, const LiveExtent& extent);
  void batch(BackfillBatch batch);

  // Sends pending records to clients that have room. Call after any of the above.
  void flush();
  // Sends new ops of the running steps and retries reads of records that were not yet written.
  void poll_running_steps();
  // Whether poll_running_steps() must be called even if no event occurs.
  bool needs_polling() const;

  struct Counts {
    std::size_t subscriptions = 0;
    std::uint64_t lost = 0;  // records lost by all clients, including disconnected ones
    std::size_t log_bytes = 0;
  };
  Counts counts() const;

 private:
  static constexpr std::uint16_t kPolicyViolation = 1008;  // WebSocket close code
  static constexpr LiveKinds kNothing{};

  // A session that is queued or running, or that has ended and still has subscribers.
  struct Session {
    JobStatus status;
    std::uint64_t states = 0, progresses = 0;  // change counters
    bool has_subscribers = false;              // has subscribers
    LiveLog log;                               // filled while it has subscribers
    LiveExtent extent;
    bool routed = false;        // its graphs have MoE routing
    StepId last_polled_step;    // step of the last poll_running_steps(); the next one usually
                                // continues there
    std::string last_message;   // final message; not empty: the session has ended
    bool rest_unknown = false;  // extent.tokens may include answer text that does not exist
  };
  // File read in progress for a subscription whose position is older than the log.
  struct Backfill {
    std::uint64_t request_id = 0;  // id of the pending request; 0: none
    LiveKinds kinds;               // requested kinds
    LivePosition log_start;        // start of the log when the read was requested
    std::uint32_t tokens_written_at_request =
        0;  // tokens known to be in the file when the read was requested
    std::shared_ptr<PartialAnswer> answer;
    std::deque<LiveRecord> batch;  // records read and not yet sent
    bool retry_on_poll = false;    // not in the file yet; poll_running_steps() retries
  };
  struct Subscription {
    explicit Subscription(std::uint32_t number) : feed(number) {}
    LiveFeed feed;
    Thin thin = Thin::None;
    bool from_wildcard = false;             // created by a subscription to "*"
    std::optional<Subscribe> pending_open;  // checking the files whether the session exists
    bool blocked = false;                   // the client had no room for the next message
    std::uint64_t states_sent = 0, progresses_sent = 0;
    LiveLosses lost_reported;
    Backfill backfill;
  };
  struct Waiting {
    std::string session;
    LiveMessage message;
  };
  struct Client {
    std::optional<Subscribe> all;
    std::uint64_t sessions_lost = 0, sessions_lost_reported = 0;  // sessions that "*" could not add
    std::uint32_t numbers = 0;                                    // last subscription number
    std::map<std::string, Subscription> subscriptions;
    std::string last_served;               // session served last; the next turn starts after it
    std::uint64_t pending_request_id = 0;  // pending file read; one at a time; 0: none
    std::uint64_t sent = 0, acked = 0;     // total message bytes
    Wishes wishes;
    bool list_changed = false;       // and the client was not told yet
    std::string batch;               // text messages not sent yet, as an array without ']'
    std::optional<Waiting> waiting;  // next message, waiting for room
    double commands = 0;             // rate limit: commands that are still allowed now
    LiveCallbacks::Clock::time_point counted_at;
    int strikes = 0;
    bool closing = false;
  };
  enum class SendResult { Sent, Nothing, NoRoom, Ended };

  // Client commands (live_commands.cpp).
  void on(ClientId id, Client& client, const Subscribe& command);
  void on(ClientId id, Client& client, const Unsubscribe& command);
  void on(ClientId id, Client& client, const Acknowledge& command);
  void on(ClientId id, Client& client, const DebugSession& command);
  void subscribe_all(ClientId id, Client& client, const Subscribe& command);
  void add_wildcard_subscription(ClientId id, Client& client, const std::string& name,
                                 Session& session, const std::optional<LivePosition>& from);
  void apply_subscription(ClientId id, Client& client, Session& session, Subscription& to,
                          const Subscribe& command);
  void open(ClientId id, Subscription& to, const Subscribe& command);
  void opened(ClientId id, Client& client, const std::string& name, Subscription& to,
              const BackfillBatch& batch);
  Session& session_of(const JobStatus& status);
  void count_command(ClientId id, Client& client);
  void strike(ClientId id, Client& client, int weight, std::string_view code,
              std::string_view detail);
  void answer(ClientId id, Client& client, std::string_view text);

  // Sending (live_clients.cpp).
  bool has_room(const Client& client, std::size_t bytes) const;
  void send(ClientId id, Client& client, const LiveMessage& message);
  void send_batch(ClientId id, Client& client);
  void write(ClientId id, Client& client, Opcode opcode, std::span<const std::byte> bytes);
  bool deliver(ClientId id, Client& client, const std::string& session, LiveMessage message);
  void flush(ClientId id, Client& client);
  SendResult next(ClientId id, Client& client, const std::string& name, Subscription& to);
  std::optional<LiveMessage> next_status_message(const std::string& name, const Session& session,
                                                 Subscription& to);
  std::optional<LiveMessage> next_record(Session& session, Subscription& to);
  void skip_to_newest(Session& session, Subscription& to);
  void poll_running_steps(const std::string& name, Session& session);
  void end(Client& client, const std::string& name);
  void trim_logs();
  void update_subscribers();

  // Backfill from files (live_reading.cpp).
  LiveKinds missing(const Session& session, const Subscription& to) const;
  void request_backfill(ClientId id, Client& client, const std::string& name,
                        const Session& session, Subscription& to, LiveKinds kinds);
  std::optional<LiveMessage> next_from_batch(const Session& session, Subscription& to);
  void lose_unavailable(Session& session, Subscription& to, bool recorded);

  LiveCallbacks callbacks_;
  LiveLimits limits_;
  std::map<ClientId, Client> clients_;
  std::map<std::string, Session> sessions_;
  std::uint64_t last_request_id_ = 0;
  std::uint64_t lost_before_ = 0;  // by subscriptions that have ended
};

}  // namespace tt
