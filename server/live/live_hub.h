// From the inference, writer and WebSocket threads to those who listen: each
// only copies what happened into one queue; one thread of the hub's own makes
// messages of it (LiveClients) and looks at the steps in flight. What is no
// longer in memory is read from the sessions' files by a third (LiveArchive).
//
//   LiveHub hub;                            // is a listener of both
//   Door door(options, hub);
//   GenerationQueue queue(options, hub);
//   hub.start({...});                       // what to send with and to look at
//
// The queue is bounded in bytes: what does not fit is not told from memory, but
// from the file; so is what happened while no client was connected, when nothing
// is copied and nobody is woken.
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

#include "server/door/websocket_handler.h"
#include "server/live/live_archive.h"
#include "server/live/live_clients.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

// What the hub needs of the rest of the server. Called on the hub's threads;
// must not block, but for `open`.
struct LiveHubPorts {
  // Queues a message for a client; false: no room, or the client is gone.
  std::function<bool(ClientId, Opcode, std::span<const std::byte>)> send;
  std::function<void(ClientId, std::uint16_t code)> close;
  // Reads nothing more from a client for so long.
  std::function<void(ClientId, std::chrono::milliseconds)> pause;
  std::function<std::optional<JobStatus>(const std::string& session)> status;
  // Of the session's step in flight, ops from `from_op` on; empty: none of it runs.
  std::function<std::optional<StepInFlight>(const std::string& session, std::uint32_t from_op)>
      in_flight;
  LiveArchive::Open open;  // a session's file
};

// A message from a client that is larger is none (DoorOptions::websocket_message_bytes).
inline constexpr std::size_t kMostCommandBytes = 16u << 10;

class LiveHub final : public SessionListener, public WebSocketHandler {
 public:
  LiveHub() = default;
  ~LiveHub() override { stop(); }
  LiveHub(const LiveHub&) = delete;
  LiveHub& operator=(const LiveHub&) = delete;

  // Events that came before are told then.
  void start(LiveHubPorts ports, LiveLimits limits = {});
  void stop();  // tells what has happened until now, and ends. Idempotent.

  // For the server's own figures; any thread.
  struct Figures {
    std::size_t clients = 0, subscriptions = 0;
    std::uint64_t lost = 0;        // tokens, steps, ops and routing that clients did not get
    std::size_t queued_bytes = 0;  // events that wait for the hub
    std::size_t log_bytes = 0;     // of the newest of each session
  };
  Figures figures() const;

  void on_state(const JobStatus& status) override;
  void on_progress(const JobStatus& status) override;
  void on_token(const std::string& session, const Token& token, std::string_view piece) override;
  void on_text(const std::string& session, std::string_view rest) override;
  void on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) override;

  std::size_t connected() const { return connected_; }  // clients; any thread

  void on_open(ClientId client, const Upgrade& upgrade) override;
  void on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) override;
  void on_close(ClientId client) override;

 private:
  struct Opened {
    ClientId client;
  };
  struct Said {
    ClientId client;
    std::string text;
  };
  struct Closed {
    ClientId client;
  };
  struct StateChanged {
    JobStatus status;
  };
  struct TokenMade {
    std::string session;
    Token token;
    std::string piece;
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
  using Event = std::variant<Opened, Said, Closed, StateChanged, TokenMade, TextEnded, StepWritten,
                             ArchivePiece>;
  struct Queued {
    Event event;
    std::size_t bytes;
  };
  // Of a session that has not ended: kept whether or not anyone listens.
  struct Newest {
    LiveExtent extent;
    std::optional<JobStatus> progress;  // not told yet
  };
  struct Peer {
    std::size_t commands = 0, bytes = 0;  // in the queue
  };

  // Without room only the file has what the event says.
  enum class Room { Needed, Made };
  void post(Event event, std::size_t bytes, Room room = Room::Made);
  void run();
  static void tell(LiveClients& clients, Event& event);

  LiveExtent extent_of(const std::string& session) const;

  std::atomic<std::size_t> connected_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Queued> events_;
  std::size_t queued_bytes_ = 0;
  std::map<std::string, Newest> newest_;
  std::map<ClientId, Peer> peers_;
  Figures figures_;
  bool news_ = false;  // in newest_, without an event
  bool stopping_ = false;

  std::function<void(ClientId, std::chrono::milliseconds)> pause_;  // from start() on
  std::unique_ptr<LiveClients> clients_;                            // the hub's thread
  std::unique_ptr<LiveArchive> archive_;
  std::thread thread_;
};

}  // namespace tt
