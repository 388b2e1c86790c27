#include "server/frontend/frontend.h"

#include <pthread.h>

#include <cassert>
#include <format>
#include <utility>

#include "server/frontend/background_thread.h"
#include "server/frontend/detail/authenticator.h"
#include "server/frontend/detail/connection_acceptor.h"
#include "server/frontend/detail/http_server.h"
#include "server/frontend/detail/listener.h"
#include "server/frontend/detail/websocket_service.h"
#include "server/frontend/detail/worker_pool.h"
#include "server/frontend/handler_slot.h"
#include "server/frontend/origin_policy.h"
#include "server/frontend/secret.h"

namespace tt {
namespace {

frontend::HttpTimeouts http_timeouts(const HttpFrontendOptions& options) {
  return {.idle = options.idle_timeout, .body = options.body_timeout, .io = options.io_timeout};
}

frontend::WebSocketOptions websocket_options(const HttpFrontendOptions& options) {
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
struct HttpFrontend::Parts {
  Parts(HttpFrontendOptions from, WebSocketHandler& handler)
      : options(std::move(from)),
        http(http_timeouts(options), options.renderer, options.on_status, options.on_complete),
        websockets(websocket_options(options), handler),
        slots(options.max_computing),
        workers(options.max_workers, options.max_workers_per_peer,
                [] {
                  pthread_setname_np(pthread_self(), "http-worker");
                  run_in_background();
                }),
        urgent_workers(options.max_workers, options.max_workers_per_peer,
                       [] { pthread_setname_np(pthread_self(), "http-urgent"); }) {}

  HttpFrontendOptions options;
  frontend::HttpServer http;
  frontend::WebSocketService websockets;
  HandlerSlots slots;
  frontend::WorkerPool workers, urgent_workers;
  std::unique_ptr<frontend::Authenticator>
      authenticator;  // created by start(), as is the next member
  std::unique_ptr<frontend::ConnectionAcceptor> acceptor;
};

HttpFrontend::HttpFrontend(HttpFrontendOptions options, WebSocketHandler& handler)
    : parts_(std::make_unique<Parts>(std::move(options), handler)) {}

HttpFrontend::~HttpFrontend() { stop(); }

httplib::Server& HttpFrontend::http() { return parts_->http; }

std::expected<BoundAddress, HttpFrontendError> HttpFrontend::start(const std::string& host,
                                                                   std::uint16_t port) {
  Parts& parts = *parts_;
  assert(!parts.acceptor);
  auto listener = frontend::open_listener(host, port);
  if (!listener) return std::unexpected(listener.error());
  const BoundAddress address{listener->local.host, listener->local.port};

  // On a non-loopback address authentication is required.
  if (parts.options.key.empty() && !is_loopback_address(address.host)) {
    parts.options.key = random_secret();
  }
  parts.authenticator = std::make_unique<frontend::Authenticator>(parts.options.key);
  const frontend::AcceptorOptions options{
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
  frontend::AcceptorCallbacks callbacks{
      .on_request =
          [&parts](frontend::AcceptedRequestPtr request) {
            std::string peer = request->connection->slot.peer();
            const auto& is_urgent = parts.options.is_urgent;
            const bool urgent = is_urgent && is_urgent(request->record);
            auto& workers = urgent ? parts.urgent_workers : parts.workers;
            HandlerSlots* const slots = urgent ? nullptr : &parts.slots;
            workers.run(std::move(peer), [&parts, slots, request = std::move(request)]() mutable {
              const frontend::ConnectionAction after = parts.http.serve(*request, slots);
              parts.acceptor->return_request(std::move(request), after);
            });
          },
      .on_upgrade =
          [&parts](frontend::ConnectionPtr connection, Upgrade upgrade) {
            return parts.websockets.adopt(std::move(connection), std::move(upgrade));
          },
      .on_status = parts.options.on_status,
      .on_complete = parts.options.on_complete,
  };
  parts.acceptor = std::make_unique<frontend::ConnectionAcceptor>(options, *parts.authenticator,
                                                                  std::move(callbacks));
  parts.http.begin(listener->fd.get());
  auto started = parts.websockets.start();
  if (started) started = parts.acceptor->start(std::move(*listener));
  if (!started) {
    stop();
    return std::unexpected(
        HttpFrontendError{HttpFrontendError::Kind::System,
                          std::format("The server could not start: {}.", started.error())});
  }
  return address;
}

bool HttpFrontend::requires_key() const {
  return parts_->authenticator && parts_->authenticator->requires_key();
}

std::string HttpFrontend::make_login_path() {
  if (!requires_key()) return "";
  const Parts& parts = *parts_;
  return parts.options.rules.login_path +
         "?code=" + parts.authenticator->create_login_code(std::chrono::steady_clock::now());
}

bool is_unauthenticated(const httplib::Request& request) {
  return request.has_header(frontend::kUnauthenticatedHeader);
}

void HttpFrontend::stop(std::chrono::milliseconds grace) {
  Parts& parts = *parts_;
  if (!parts.acceptor) return;
  const auto deadline = std::chrono::steady_clock::now() + grace;
  parts.acceptor->stop();  // no new connections or requests after this
  parts.http.begin_stop();
  parts.websockets.begin_stop();
  const bool idle = parts.workers.wait_idle(deadline);
  if (!parts.urgent_workers.wait_idle(deadline) || !idle) parts.http.abort_requests();
  parts.websockets.finish_stop(deadline);
  parts.workers.join();
  parts.urgent_workers.join();
}

bool HttpFrontend::send(ClientId client, Opcode opcode, std::span<const std::byte> message) {
  return parts_->websockets.send(client, opcode, message);
}

bool HttpFrontend::send(ClientId client, std::string_view text) {
  return send(client, Opcode::Text, std::as_bytes(std::span(text)));
}

void HttpFrontend::close(ClientId client, std::uint16_t code) {
  parts_->websockets.close(client, code);
}

void HttpFrontend::pause(ClientId client, std::chrono::milliseconds time) {
  parts_->websockets.pause(client, time);
}

std::optional<ClientStats> HttpFrontend::stats(ClientId client) const {
  return parts_->websockets.stats(client);
}

}  // namespace tt
