#include "server/app/door_options.h"

#include "server/door/admission.h"
#include "server/http/refusals.h"

namespace tt {

DoorOptions door_options(const ServerOptions& options) {
  DoorOptions door;
  door.rules.cors_origins = options.cors_origins;
  door.rules.https = options.public_url.starts_with("https:");
  // Import formats: session file, log, run folder archive.
  for (const char* type :
       {"application/octet-stream", "application/x-ndjson", "application/x-tar"}) {
    door.rules.other_bodies.push_back(
        {.path = "/api/v1/sessions", .type = type, .max_bytes = options.max_import});
  }
  door.renderer = &render_refusal;
  door.key = options.api_key.key;
  door.allowed_hosts = options.allowed_hosts;
  if (!options.public_url.empty()) {
    door.allowed_hosts.push_back(host_of_origin(options.public_url));
  }
  door.max_connections = options.max_connections;
  door.max_connections_per_peer = options.max_connections / 2;
  // Clients behind a proxy or on another address are reached over a network.
  const bool loopback = options.host == "localhost" || is_loopback_address(options.host);
  door.websocket_deflate = !loopback || !options.public_url.empty();
  door.max_websockets = options.max_live_clients;
  door.max_websockets_per_peer = options.max_live_clients / 2;
  return door;
}

}  // namespace tt
