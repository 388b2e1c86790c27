// One accepted TCP connection that speaks HTTP. Exactly one of the doorman, a
// worker and the WebSocket service owns it at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/door/detail/fd.h"

struct sockaddr_storage;

namespace tt::door {

struct Endpoint {
  std::string host;  // numeric
  std::uint16_t port = 0;
};

struct Connection {
  Fd fd;  // non-blocking
  Endpoint peer;
  Endpoint local;
};

using ConnectionPtr = std::unique_ptr<Connection>;

Endpoint to_endpoint(const sockaddr_storage& address);

// The address that a socket is bound to; empty host when it has none.
Endpoint local_endpoint(int fd);

}  // namespace tt::door
