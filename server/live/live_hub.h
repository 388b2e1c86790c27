// Delivers events from the inference, writer and WebSocket threads to live clients. Callers
// only copy the event into one queue; the hub's own thread creates the messages (LiveClients)
// and polls the running steps. A third thread (BackfillReader) reads records that are no longer
// in memory from the session files.
//
//   LiveHub hub;                            // listener for both
//   HttpFrontend frontend(options, hub);
//   GenerationQueue queue(options, hub);
//   hub.start({...});                       // callbacks
//
// The queue has a byte limit. Events that do not fit are later read from the file, and so are
// events from before the first client connected: without clients nothing is copied and no
// thread is woken.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "server/frontend/websocket_handler.h"
#include "server/live/backfill_reader.h"
#include "server/live/live_clients.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

// Callbacks into the rest of the server. Called on the hub's threads. They must not block,
// except `open`.
struct LiveHubCallbacks {
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
  BackfillReader::Open open;  // opens a session file
  LiveCallbacks::Debug debug = no_debugger;
};

// Maximum size of a client message (HttpFrontendOptions::websocket_message_bytes).
inline constexpr std::size_t kMaxCommandBytes = 16u << 10;

class LiveHub final : public SessionListener, public WebSocketHandler {
 public:
  LiveHub() = default;
  ~LiveHub() override { stop(); }
  LiveHub(const LiveHub&) = delete;
  LiveHub& operator=(const LiveHub&) = delete;

  // Delivers events queued before the call.
  void start(LiveHubCallbacks callbacks, LiveLimits limits = {});
  void stop();  // delivers all queued events, then ends. Idempotent.

  // For the server metrics; any thread.
  struct Stats {
    std::size_t clients = 0, subscriptions = 0;
    std::uint64_t lost = 0;        // records that clients did not receive
    std::size_t queued_bytes = 0;  // queued events
    std::size_t log_bytes = 0;     // of all session logs
  };
  Stats stats() const;

  void on_state(const JobStatus& status) override;
  void on_progress(const JobStatus& status) override;
  void on_token(const std::string& session, const Token& token, std::string_view text) override;
  void on_text(const std::string& session, std::string_view rest) override;
  void on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) override;
  // The file of a session that another program records has grown to `extent`; the records are read
  // from it.
  void on_file_grown(const JobStatus& status, const LiveExtent& extent);

  // The list of sessions has changed, or the figures of one in it.
  void on_list_changed();

  std::size_t connected() const { return connected_; }  // number of clients; any thread

  void on_open(ClientId client, const Upgrade& upgrade) override;
  void on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) override;
  void on_close(ClientId client) override;

 private:
  struct ClientConnected {
    ClientId client;
    LiveClients::Wishes wishes;
  };
  struct MessageReceived {
    ClientId client;
    std::string text;
  };
  struct ClientDisconnected {
    ClientId client;
  };
  struct ListChanged {};
  struct StateChanged {
    JobStatus status;
  };
  struct TokenMade {
    std::string session;
    Token token;
    std::string text;
  };
  struct TextEnded {
    std::string session;
    std::uint32_t index;
    std::string rest;
  };
  struct StepWritten {
    std::string session;
    Step step;
    KnownGraphPtr graph;
  };
  using Event = std::variant<ClientConnected, MessageReceived, ClientDisconnected, ListChanged,
                             StateChanged, TokenMade, TextEnded, StepWritten, BackfillBatch>;
  struct Queued {
    Event event;
    std::size_t bytes;
  };
  // Per session that has not ended; kept even without clients.
  struct LatestState {
    LiveExtent extent;
    std::optional<JobStatus> progress;  // not delivered yet
  };
  struct Peer {
    std::size_t commands = 0, bytes = 0;  // in the queue
  };

  // Record: sent with the next turn of the hub's thread. Dropped when the queue is full; clients
  // then read it from the file. Control: always queued, and handled at once.
  enum class Urgency { Record, Control };
  void post(Event event, std::size_t bytes, Urgency urgency = Urgency::Control);
  void run();
  static void dispatch(LiveClients& clients, Event& event);

  LiveExtent extent_of(const std::string& session) const;

  std::atomic<std::size_t> connected_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Queued> events_;
  std::size_t queued_bytes_ = 0;
  std::map<std::string, LatestState> latest_;
  std::map<ClientId, Peer> peers_;
  Stats stats_;
  bool progress_pending_ = false;  // latest_ changed without an event
  bool urgent_ = false;            // the queue must be handled at once
  bool stopping_ = false;

  std::function<void(ClientId, std::chrono::milliseconds)> pause_;  // set by start()
  std::unique_ptr<LiveClients> clients_;                            // the hub's thread only
  std::unique_ptr<BackfillReader> backfill_reader_;
  std::thread thread_;
};

}  // namespace tt
