// One address for everything: HTTP (cpp-httplib) and WebSocket (libwebsockets)
// on one host:port.
//
//   Door door(options, live_hub);                    // live_hub: a WebSocketHandler
//   door.http().Get("/api/v1/health", ...);          // routes before start
//   auto address = door.start("127.0.0.1", 8080);    // port 0: any free one
//   if (!address) return fail(address.error().message);
//   ...
//   door.stop();
//
// How it works. One thread, the doorman, accepts connections and keeps all that
// wait, for their first byte, the rest of a request head, or the next request,
// in one epoll. It only looks at the bytes (MSG_PEEK), so that whoever gets the
// connection reads it from the start. A complete head decides: a request goes
// to a pool of workers, where cpp-httplib parses and answers it, and comes back
// for the next one; an upgrade of websocket_path goes to the libwebsockets
// thread; what is malformed, too large, from another site or from someone who is
// not known is refused on the spot (detail/verdict.h, in one place, before a
// handler or the WebSocket service sees it). So a connection that sends nothing, or half a head,
// costs one descriptor until its deadline and never a thread.
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

#include "server/door/answered.h"
#include "server/door/door_rules.h"
#include "server/door/refusal.h"
#include "server/door/websocket_handler.h"

namespace httplib {
class Server;
struct Request;
}  // namespace httplib

namespace tt {

struct DoorOptions {
  DoorRules rules;
  // How refusals look; none: a line of plain text.
  RefusalRenderer renderer;

  // What programs have to show ("Authorization: Bearer KEY"). Empty: on a
  // loopback address nobody is asked; on any other a random key is made, so
  // that only login links let anybody in.
  std::string key;

  // Names besides loopback and the bound host that a Host header may carry
  // (admission.h): a reverse proxy's, this machine's.
  std::vector<std::string> allowed_hosts;

  // HTTP connections at a time; one more takes the place of the one that has
  // waited longest, or gets a 503 when every one is being served. Per peer (an
  // address, of IPv6 a /64) likewise: one client cannot have them all.
  std::size_t max_connections = 512;
  std::size_t max_connections_per_peer = 256;
  // Requests answered at a time, of all and of one peer; further ones wait. Each
  // response that streams holds one. Threads are started as they are needed.
  std::size_t max_workers = 128;
  std::size_t max_workers_per_peer = 64;

  std::chrono::milliseconds idle_timeout{60'000};  // no byte of a (next) request
  std::chrono::milliseconds head_timeout{10'000};  // from a head's first byte to its last
  // A request's whole body; each 16 KiB of it add a second.
  std::chrono::milliseconds body_timeout{30'000};
  // A single read or write that makes no progress, and all the waiting for the
  // reader of one response, to which each 16 KiB add a second.
  std::chrono::milliseconds io_timeout{30'000};

  std::size_t max_websockets = 64;  // further upgrades: 503
  std::size_t max_websockets_per_peer = 32;
  std::size_t websocket_queue_bytes = 4u << 20;    // per client, outgoing
  std::size_t websocket_message_bytes = 1u << 20;  // incoming; larger: close 1009
  // Messages are compressed for clients that offer it (permessage-deflate): over loopback
  // that costs more time than it saves.
  bool websocket_deflate = false;
  std::chrono::seconds websocket_ping_interval{20};  // a peer silent for 3 of them is dropped

  // Both: any thread, must not block; may be empty. Of each request, once, that its
  // status is known: before the first byte of the answer is sent, so that whoever
  // has the answer finds it counted. Its time, bytes and note are not known yet.
  std::function<void(const Answered&)> on_status;
  // And once that it was answered.
  std::function<void(const Answered&)> on_answer;

  // Errors and warnings of the libraries, any thread. None: they stay silent.
  std::function<void(std::string_view)> log;
};

struct BoundAddress {
  std::string host;  // numeric
  std::uint16_t port = 0;
  // For a browser on this machine: "http://127.0.0.1:8080", "http://[::1]:8080".
  std::string url() const;
};

struct DoorError {
  enum class Kind { BadHost, PortTaken, NotPermitted, System };
  Kind kind;
  std::string message;  // one sentence for the person who started the server
};

// Under this name a handler leaves a std::string in Response::user_data that
// Answered::note shall have.
inline constexpr const char* kNoteForLog = "tt.note";

// Whether the door let this in although it does not know who sends it
// (DoorRules::open_paths): such an answer tells no more than it must.
bool is_stranger(const httplib::Request& request);

class Door {
 public:
  // `handler` outlives the door.
  Door(DoorOptions options, WebSocketHandler& handler);
  ~Door();  // stops
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // For routes, mounts, limits and error pages, before start. Handlers run on
  // workers, several at a time. Its listen, bind and stop are not used, nor its
  // timeouts: the options above hold. A content provider that waits for data
  // has to look up, at least every second, whether it is told to end: stop()
  // can only end it between two calls. The headers that every response carries
  // are added below it: handlers set none of them, but a Content-Security-Policy
  // where a page needs its own. Authorization and Cookie are
  // taken off before handlers see a request.
  httplib::Server& http();

  // Binds, and serves from when it returns; once per door. A name with several
  // addresses is bound to its first, IPv4 before IPv6.
  std::expected<BoundAddress, DoorError> start(const std::string& host, std::uint16_t port);

  // Whether a key is needed, once started.
  bool asks_for_key() const;

  // A path that logs one browser in, once, within ten minutes: "/login?code=...".
  // It voids the one before. Empty while nobody is asked for a key. Once
  // started; any thread.
  std::string make_login_path();

  // Ends everything: no new connections, requests in progress are finished,
  // clients get their queued frames and a close frame (1001). What is not done
  // after `grace` is cut off. All threads are joined, all sockets closed; only
  // a handler that does not return makes it wait longer. Safe to repeat; not
  // from inside a handler.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds{3000});

  // Queues one message for a client; any thread, never blocks. False when the
  // client is gone or its queue has no room: then the frame is lost and
  // counted (stats), nothing else. What is queued is sent in order.
  bool send(ClientId client, Opcode opcode, std::span<const std::byte> message);
  bool send(ClientId client, std::string_view text);  // valid UTF-8

  // Says goodbye after what is queued (RFC 6455 close code), any thread.
  void close(ClientId client, std::uint16_t code = 1000);

  // Reads nothing more from a client for so long; any thread. Of several pauses the
  // last to end counts. What it sends meanwhile waits, most of it with the client.
  // From inside on_message it holds at once, else there may be one more message.
  void pause(ClientId client, std::chrono::milliseconds time);

  // Empty when the client is gone.
  std::optional<ClientStats> stats(ClientId client) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tt
