// One accepted TCP connection that speaks HTTP. Exactly one of the doorman, a
// worker and the WebSocket service owns it at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/door/detail/fd.h"
#include "server/door/detail/peer_slots.h"

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
  PeerSlot slot;  // of peer_group(peer.host)
};

using ConnectionPtr = std::unique_ptr<Connection>;

// Who is counted as one: an IPv4 address, or the 64 bits of an IPv6 address that
// a network gives out (whoever has one of them has them all).
std::string peer_group(const std::string& host);

Endpoint to_endpoint(const sockaddr_storage& address);

// The address that a socket is bound to; empty host when it has none.
Endpoint local_endpoint(int fd);

}  // namespace tt::door
