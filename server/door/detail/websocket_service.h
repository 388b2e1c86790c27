// libwebsockets on its one thread. Everything of that library happens on it;
// other threads put something into a queue and wake it.
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

#include "server/door/detail/connection.h"
#include "server/door/detail/message_deflate.h"
#include "server/door/websocket_handler.h"

struct lws;
struct lws_context;
struct lws_vhost;

namespace tt::door {

struct WebSocketOptions {
  std::size_t max_clients = 0;
  std::size_t max_clients_per_peer = 0;
  std::size_t queue_bytes = 0;    // per client, outgoing
  std::size_t message_bytes = 0;  // incoming
  bool deflate = false;           // DoorOptions::websocket_deflate
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

  // Takes a connection whose upgrade request is still in the socket, or gives
  // it back when there is no room (for this peer) or the service ends. Any thread.
  ConnectionPtr adopt(ConnectionPtr connection, Upgrade upgrade);

  bool send(ClientId id, Opcode opcode, std::span<const std::byte> message);
  void close(ClientId id, std::uint16_t code);
  void pause(ClientId id, std::chrono::milliseconds time);
  std::optional<ClientStats> stats(ClientId id) const;

  // No new clients; those there are get what is queued and a close frame.
  void begin_stop();
  // Waits for them until `deadline`, cuts off the rest, joins. Safe to repeat.
  void finish_stop(std::chrono::steady_clock::time_point deadline);

 private:
  struct Frame;
  struct Client;
  struct Library;  // what libwebsockets keeps pointers to, and its callback

  void loop();
  void take_orders();
  int on_established(Client& client);
  int on_received(Client& client, std::span<const std::byte> part);
  // The close code for what is no message; 0: the handler has it.
  std::uint16_t hand_over(Client& client);
  int on_writable(Client& client);
  void forget(Client& client);
  void begin_pause(Client& client);
  void go_on_pausing(Client& client, std::chrono::steady_clock::time_point now);
  int on_pause_time(Client& client);
  void order_write(Client& client);
  void wake();

  const WebSocketOptions options_;
  WebSocketHandler& handler_;
  std::unique_ptr<Library> library_;
  std::thread thread_;
  Deflater deflater_;  // the service thread's

  mutable std::mutex mutex_;
  std::condition_variable no_clients_;
  // Guarded by mutex_. Clients are added by adopt() and removed only on the
  // service thread, which therefore may keep a reference while unlocked.
  std::unordered_map<ClientId, std::unique_ptr<Client>> clients_;
  std::vector<ClientId> to_adopt_;
  std::vector<ClientId> to_write_;
  std::vector<ClientId> to_pause_;
  lws_context* context_ = nullptr;  // null before start and after the end
  bool woken_ = false;              // a wake-up is on its way
  bool stopping_ = false;
  bool quit_ = false;
};

}  // namespace tt::door
