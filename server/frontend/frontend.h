// HTTP front end: HTTP (cpp-httplib) and WebSocket (libwebsockets) on one host:port.
//
//   HttpFrontend frontend(options, live_hub);                    // live_hub: a WebSocketHandler
//   frontend.http().Get("/api/v1/health", ...);          // routes before start
//   auto address = frontend.start("127.0.0.1", 8080);    // port 0: any free port
//   if (!address) return fail(address.error().message);
//   ...
//   frontend.stop();
//
// Design: One acceptor thread accepts connections and holds all waiting ones in one epoll:
// those without data, with an incomplete request head, or idle between requests. It only peeks
// at the bytes (MSG_PEEK), so the next owner of the connection reads the request from its
// start. Once the head is complete, the thread decides. A request goes to a worker pool, where
// cpp-httplib parses and answers it; then the connection returns to the acceptor. An upgrade
// of websocket_path goes to the libwebsockets thread. A request that is malformed, too large,
// from another site or unauthenticated is rejected immediately (detail/request_decision.h), before
// a handler or the WebSocket service sees it. So a connection that sends nothing or half a head
// costs one descriptor until its deadline, but no thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/frontend/frontend_rules.h"
#include "server/frontend/rejection.h"
#include "server/frontend/request_record.h"
#include "server/frontend/websocket_handler.h"

namespace httplib {
class Server;
struct Request;
}  // namespace httplib

namespace tt {

struct HttpFrontendOptions {
  FrontendRules rules;
  // Formats rejections. Empty: one line of plain text.
  RejectionRenderer renderer;

  // API key that programs send ("Authorization: Bearer KEY"). Empty: a loopback address needs
  // no authentication; any other address gets a random key, so that only login links give
  // access.
  std::string key;

  // Additional values of the Host header (origin_policy.h), besides loopback and the bound host:
  // the name of a reverse proxy or of this machine.
  std::vector<std::string> allowed_hosts;

  // Maximum number of HTTP connections. A further connection replaces the one that has waited
  // longest, or gets a 503 when all are being served. The same applies per peer (an IPv4
  // address or an IPv6 /64), so that one client cannot use all connections.
  std::size_t max_connections = 512;
  std::size_t max_connections_per_peer = 256;
  // Maximum number of requests served at a time, in total and per peer; further ones wait. A
  // streaming response occupies a worker. Threads are started on demand. They run at low priority
  // (background_thread.h), so that many clients do not slow down the inference.
  std::size_t max_workers = 128;
  std::size_t max_workers_per_peer = 64;
  // Maximum number of their handlers that compute at a time (handler_slot.h).
  std::size_t max_computing = 128;
  // Requests that have as many workers of normal priority: those that must be answered at once
  // whatever other clients do, and those that start threads, which inherit the priority. Path and
  // method of the record are set. Must not block; empty: none.
  std::function<bool(const RequestRecord&)> is_urgent;

  std::chrono::milliseconds idle_timeout{60'000};  // no byte of a (next) request
  std::chrono::milliseconds head_timeout{10'000};  // from a head's first byte to its last
  // Time for a whole request body, plus one second per 16 KiB.
  std::chrono::milliseconds body_timeout{30'000};
  // Time for a single read or write without progress, and for all waits for the client while
  // sending one response, plus one second per 16 KiB of the response.
  std::chrono::milliseconds io_timeout{30'000};

  std::size_t max_websockets = 64;  // further upgrades: 503
  std::size_t max_websockets_per_peer = 32;
  std::size_t websocket_queue_bytes = 4u << 20;    // per client, outgoing
  std::size_t websocket_message_bytes = 1u << 20;  // incoming; larger: close 1009
  // Compress messages for clients that offer permessage-deflate. Over loopback this costs more
  // time than it saves.
  bool websocket_deflate = false;
  std::chrono::seconds websocket_ping_interval{20};  // a peer silent for 3 of them is dropped

  // The two callbacks below may be called on any thread, must not block and may be empty.
  // on_status is called once per request, when its status is known and before the first byte
  // of the response is sent, so a client that has the response is already counted. Time, bytes
  // and note are not known yet.
  std::function<void(const RequestRecord&)> on_status;
  // Called once per request, after the response.
  std::function<void(const RequestRecord&)> on_complete;

  // Receives errors and warnings of the libraries, on any thread. Empty: they are discarded.
  std::function<void(std::string_view)> log;
};

struct BoundAddress {
  std::string host;  // numeric
  std::uint16_t port = 0;
  // For a browser on this machine: "http://127.0.0.1:8080", "http://[::1]:8080".
  std::string url() const;
};

struct HttpFrontendError {
  enum class Kind { BadHost, PortTaken, NotPermitted, System };
  Kind kind;
  std::string message;  // one sentence for the operator
};

// Key of Response::user_data. A handler can store a std::string there for RequestRecord::note.
inline constexpr const char* kLogNote = "tt.note";

// Returns true when the request is not authenticated but allowed by FrontendRules::public_paths.
// The response must then contain only what is public.
bool is_unauthenticated(const httplib::Request& request);

class HttpFrontend {
 public:
  // `handler` must outlive this object.
  HttpFrontend(HttpFrontendOptions options, WebSocketHandler& handler);
  ~HttpFrontend();  // calls stop()
  HttpFrontend(const HttpFrontend&) = delete;
  HttpFrontend& operator=(const HttpFrontend&) = delete;

  // The HTTP server, for routes, mounts, limits and error pages; configure it before start().
  // Handlers run on several worker threads concurrently. Do not use its listen, bind and stop
  // functions or its timeouts: the options above apply. A content provider that waits for data
  // must check at least once per second whether it should end, because stop() can end it only
  // between two calls. The common response headers are added by the front end: handlers must
  // not set them, except Content-Security-Policy where a page needs its own. Authorization and
  // Cookie are removed before handlers see a request.
  httplib::Server& http();

  // Binds and starts serving before it returns. Call it once. A name with several addresses is
  // bound to the first one, IPv4 before IPv6.
  std::expected<BoundAddress, HttpFrontendError> start(const std::string& host, std::uint16_t port);

  // Returns true when a key is required. Valid after start().
  bool requires_key() const;

  // Creates a path that logs one browser in, once, within ten minutes: "/login?code=...". It
  // invalidates the previous one. Empty when no key is required. Call it after start(); any
  // thread.
  std::string make_login_path();

  // Stops the front end: rejects new connections, finishes requests in progress, and sends
  // WebSocket clients their queued frames and a close frame (1001). What is not done after
  // `grace` is aborted. Joins all threads and closes all sockets; only a handler that does not
  // return delays this further. Idempotent; must not be called from a handler.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds{3000});

  // Queues one message for a client; any thread, never blocks. Returns false when the client
  // has disconnected or its queue is full; in the latter case the message is dropped and
  // counted in the stats. Queued messages are sent in order.
  bool send(ClientId client, Opcode opcode, std::span<const std::byte> message);
  bool send(ClientId client, std::string_view text);  // valid UTF-8

  // Sends a close frame with this code (RFC 6455) after the queued messages. Any thread.
  void close(ClientId client, std::uint16_t code = 1000);

  // Stops reading from a client for `time`; any thread. Of overlapping pauses the latest end
  // applies. Unread data stays in socket buffers, mostly at the client. When called from
  // on_message it takes effect at once, otherwise one more message may arrive.
  void pause(ClientId client, std::chrono::milliseconds time);

  // nullopt when the client has disconnected.
  std::optional<ClientStats> stats(ClientId client) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tt
