// Runs libwebsockets on its own thread. All calls of the library happen on that thread; other
// threads queue requests and wake it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/frontend/detail/connection.h"
#include "server/frontend/detail/message_deflate.h"
#include "server/frontend/websocket_handler.h"

struct lws;
struct lws_context;
struct lws_vhost;

namespace tt::frontend {

struct WebSocketOptions {
  std::size_t max_clients = 0;
  std::size_t max_clients_per_peer = 0;
  std::size_t queue_bytes = 0;    // per client, outgoing
  std::size_t message_bytes = 0;  // incoming
  bool deflate = false;           // HttpFrontendOptions::websocket_deflate
  std::chrono::seconds ping_interval{};
  std::function<void(std::string_view)> log;  // may be empty
};

class WebSocketService {
 public:
  WebSocketService(WebSocketOptions options, WebSocketHandler& handler);
  ~WebSocketService();
  WebSocketService(const WebSocketService&) = delete;
  WebSocketService& operator=(const WebSocketService&) = delete;

  std::expected<void, std::string> start();

  // Takes a connection whose upgrade request is still in the socket. Returns it when the limit
  // (total or per peer) is reached or the service is stopping. Any thread.
  ConnectionPtr adopt(ConnectionPtr connection, Upgrade upgrade);

  bool send(ClientId id, Opcode opcode, std::span<const std::byte> message);
  void close(ClientId id, std::uint16_t code);
  void pause(ClientId id, std::chrono::milliseconds time);
  std::optional<ClientStats> stats(ClientId id) const;

  // Rejects new clients; existing ones get their queued messages and a close frame.
  void begin_stop();
  // Waits for the clients until `deadline`, closes the rest, joins the thread. Idempotent.
  void finish_stop(std::chrono::steady_clock::time_point deadline);

 private:
  struct Frame;
  struct Client;
  struct Library;  // libwebsockets configuration and callback

  void loop();
  void process_requests();
  int on_established(Client& client);
  int on_received(Client& client, std::span<const std::byte> part);
  // Passes a complete message to the handler. Returns the close code for an invalid message,
  // or 0.
  std::uint16_t deliver(Client& client);
  int on_writable(Client& client);
  void remove_client(Client& client);
  void start_pause(Client& client);
  void continue_pause(Client& client, std::chrono::steady_clock::time_point now);
  int on_pause_timer(Client& client);
  void request_write(Client& client);
  void wake();

  const WebSocketOptions options_;
  WebSocketHandler& handler_;
  std::unique_ptr<Library> library_;
  std::thread thread_;
  Deflater deflater_;  // used only by the service thread

  mutable std::mutex mutex_;
  std::condition_variable no_clients_;
  // Guarded by mutex_. Clients are added by adopt() and removed only on the service thread,
  // which therefore may keep references while the mutex is unlocked.
  std::unordered_map<ClientId, std::unique_ptr<Client>> clients_;
  std::vector<ClientId> to_adopt_;
  std::vector<ClientId> to_write_;
  std::vector<ClientId> to_pause_;
  lws_context* context_ = nullptr;  // null before start and after the thread has ended
  bool woken_ = false;              // a wake-up is pending
  bool stopping_ = false;
  bool quit_ = false;
};

}  // namespace tt::frontend
