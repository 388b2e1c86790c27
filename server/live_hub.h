// From the inference, writer and WebSocket threads to those who listen: each
// only copies what happened into one queue; one thread of the hub's own makes
// messages of it (LiveClients) and looks at the step in flight.
//
//   LiveHub hub;                            // is a listener of both
//   Door door(options, hub);
//   GenerationQueue queue(options, hub);
//   hub.start({...});                       // what to send with and to look at
//
// The queue is bounded in bytes; what does not fit is counted in its place and
// told to all who listen. Without a connected client nothing is copied.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "server/door/websocket_handler.h"
#include "server/live_clients.h"
#include "tracer/generation_queue.h"

namespace tt {

class LiveHub final : public SessionListener, public WebSocketHandler {
 public:
  LiveHub() = default;
  ~LiveHub() override { stop(); }
  LiveHub(const LiveHub&) = delete;
  LiveHub& operator=(const LiveHub&) = delete;

  // Events that came before are told then.
  void start(LivePorts ports);
  void stop();  // tells what has happened until now, and ends. Idempotent.

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
  struct Progressed {
    JobStatus status;
  };
  struct TokenMade {
    std::string session;
    Token token;
    std::string piece;
  };
  struct TextEnded {
    std::string session, rest;
  };
  struct StepWritten {
    std::string session;
    StepId id;
    std::unique_ptr<const Step> step;  // null: nobody was connected
    KnownGraphPtr graph;
  };
  struct Missed {
    std::uint64_t events;
  };
  using Event = std::variant<Opened, Said, Closed, StateChanged, Progressed, TokenMade, TextEnded,
                             StepWritten, Missed>;
  struct Queued {
    Event event;
    std::size_t bytes;
  };

  // `bytes` 0: small and never dropped.
  void post(Event event, std::size_t bytes);
  void run();
  static void tell(LiveClients& clients, const Event& event);

  std::atomic<std::size_t> connected_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Queued> events_;
  std::size_t queued_bytes_ = 0;
  bool stopping_ = false;
  std::unique_ptr<LiveClients> clients_;  // the hub's thread
  std::thread thread_;
};

}  // namespace tt
