#include "server/door/door.h"

#include <cassert>
#include <format>
#include <utility>

#include "server/door/admission.h"
#include "server/door/detail/access.h"
#include "server/door/detail/doorman.h"
#include "server/door/detail/http_server.h"
#include "server/door/detail/listener.h"
#include "server/door/detail/websocket_service.h"
#include "server/door/detail/worker_pool.h"
#include "server/door/secret.h"

namespace tt {
namespace {

door::HttpTimeouts http_timeouts(const DoorOptions& options) {
  return {.idle = options.idle_timeout, .body = options.body_timeout, .io = options.io_timeout};
}

door::WebSocketOptions websocket_options(const DoorOptions& options) {
  return {.max_clients = options.max_websockets,
          .max_clients_per_peer = options.max_websockets_per_peer,
          .queue_bytes = options.websocket_queue_bytes,
          .message_bytes = options.websocket_message_bytes,
          .deflate = options.websocket_deflate,
          .ping_interval = options.websocket_ping_interval,
          .log = options.log};
}

}  // namespace

std::string BoundAddress::url() const {
  // Bound to all addresses: use loopback.
  if (host == "0.0.0.0") return std::format("http://127.0.0.1:{}", port);
  if (host == "::") return std::format("http://[::1]:{}", port);
  if (host.contains(':')) return std::format("http://[{}]:{}", host, port);
  return std::format("http://{}:{}", host, port);
}

// In order of construction; stop() ends them in reverse order.
struct Door::Parts {
  Parts(DoorOptions from, WebSocketHandler& handler)
      : options(std::move(from)),
        http(http_timeouts(options), options.renderer, options.on_status, options.on_answer),
        websockets(websocket_options(options), handler),
        workers(options.max_workers, options.max_workers_per_peer) {}

  DoorOptions options;
  door::HttpServer http;
  door::WebSocketService websockets;
  door::WorkerPool workers;
  std::unique_ptr<door::Access> access;  // created by start(), as is the next member
  std::unique_ptr<door::Doorman> doorman;
};

Door::Door(DoorOptions options, WebSocketHandler& handler)
    : parts_(std::make_unique<Parts>(std::move(options), handler)) {}

Door::~Door() { stop(); }

httplib::Server& Door::http() { return parts_->http; }

std::expected<BoundAddress, DoorError> Door::start(const std::string& host, std::uint16_t port) {
  Parts& parts = *parts_;
  assert(!parts.doorman);
  auto listener = door::open_listener(host, port);
  if (!listener) return std::unexpected(listener.error());
  const BoundAddress address{listener->local.host, listener->local.port};

  // On a non-loopback address authentication is required.
  if (parts.options.key.empty() && !is_loopback_address(address.host)) {
    parts.options.key = random_secret();
  }
  parts.access = std::make_unique<door::Access>(parts.options.key);
  const door::DoormanOptions options{
      .rules = {.hosts = {.bound_host = host,
                          .any_address = listener->any_address,
                          .allowed_hosts = parts.options.allowed_hosts},
                .requests = parts.options.rules},
      .renderer = parts.options.renderer,
      .max_connections = parts.options.max_connections,
      .max_connections_per_peer = parts.options.max_connections_per_peer,
      .idle_timeout = parts.options.idle_timeout,
      .head_timeout = parts.options.head_timeout,
  };
  door::DoormanCalls calls{
      .on_request =
          [&parts](door::Admitted request) {
            std::string peer = request.connection->slot.peer();
            parts.workers.run(std::move(peer), [&parts, request = std::move(request)]() mutable {
              const door::After after = parts.http.serve(request);
              parts.doorman->give_back(std::move(request.connection), after);
            });
          },
      .on_upgrade =
          [&parts](door::ConnectionPtr connection, Upgrade upgrade) {
            return parts.websockets.adopt(std::move(connection), std::move(upgrade));
          },
      .on_status = parts.options.on_status,
      .on_answer = parts.options.on_answer,
  };
  parts.doorman = std::make_unique<door::Doorman>(options, *parts.access, std::move(calls));
  parts.http.begin(listener->fd.get());
  auto started = parts.websockets.start();
  if (started) started = parts.doorman->start(std::move(*listener));
  if (!started) {
    stop();
    return std::unexpected(DoorError{
        DoorError::Kind::System, std::format("The server could not start: {}.", started.error())});
  }
  return address;
}

bool Door::asks_for_key() const { return parts_->access && parts_->access->asks(); }

std::string Door::make_login_path() {
  if (!asks_for_key()) return "";
  const Parts& parts = *parts_;
  return parts.options.rules.login_path +
         "?code=" + parts.access->new_code(std::chrono::steady_clock::now());
}

bool is_stranger(const httplib::Request& request) {
  return request.has_header(door::kStrangerHeader);
}

void Door::stop(std::chrono::milliseconds grace) {
  Parts& parts = *parts_;
  if (!parts.doorman) return;
  const auto deadline = std::chrono::steady_clock::now() + grace;
  parts.doorman->stop();  // no new connections or requests after this
  parts.http.begin_stop();
  parts.websockets.begin_stop();
  if (!parts.workers.wait_idle(deadline)) parts.http.cut_off();
  parts.websockets.finish_stop(deadline);
  parts.workers.join();
}

bool Door::send(ClientId client, Opcode opcode, std::span<const std::byte> message) {
  return parts_->websockets.send(client, opcode, message);
}

bool Door::send(ClientId client, std::string_view text) {
  return send(client, Opcode::Text, std::as_bytes(std::span(text)));
}

void Door::close(ClientId client, std::uint16_t code) { parts_->websockets.close(client, code); }

void Door::pause(ClientId client, std::chrono::milliseconds time) {
  parts_->websockets.pause(client, time);
}

std::optional<ClientStats> Door::stats(ClientId client) const {
  return parts_->websockets.stats(client);
}

}  // namespace tt
