#include "server/app/frontend_options.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "server/frontend/origin_policy.h"
#include "server/http/rejections.h"

namespace tt {

namespace {

bool is_urgent(const RequestRecord& request) {
  const std::string_view path = request.path;
  if (request.method == "GET" || request.method == "HEAD")
    return path == "/api/v1/health" || path == "/metrics";
  // Inference and memory budget start threads and child processes.
  return path.starts_with("/api/v1/generate") || path.starts_with("/api/v1/models");
}

}  // namespace

HttpFrontendOptions frontend_options(const ServerOptions& options) {
  HttpFrontendOptions frontend;
  frontend.rules.cors_origins = options.cors_origins;
  frontend.rules.embed_origins = options.embed_origins;
  frontend.rules.https = options.public_url.starts_with("https:");
  // Import formats: session file, log, run folder archive.
  for (const char* type :
       {"application/octet-stream", "application/x-ndjson", "application/x-tar"}) {
    frontend.rules.body_rules.push_back(
        {.path = "/api/v1/sessions", .type = type, .max_bytes = options.max_import});
  }
  frontend.is_urgent = &is_urgent;
  frontend.max_computing = std::max(2U, std::thread::hardware_concurrency());
  frontend.renderer = &render_rejection;
  frontend.key = options.api_key.key;
  frontend.allowed_hosts = options.allowed_hosts;
  if (!options.public_url.empty()) {
    frontend.allowed_hosts.push_back(host_of_origin(options.public_url));
  }
  frontend.max_connections = options.max_connections;
  frontend.max_connections_per_peer = options.max_connections / 2;
  // Clients behind a proxy or on another address are reached over a network.
  const bool loopback = options.host == "localhost" || is_loopback_address(options.host);
  frontend.websocket_deflate = !loopback || !options.public_url.empty();
  frontend.max_websockets = options.max_live_clients;
  frontend.max_websockets_per_peer = options.max_live_clients / 2;
  return frontend;
}

}  // namespace tt
