// One accepted TCP connection that speaks HTTP. At any time it has exactly one owner: the
// acceptor, a worker or the WebSocket service.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/frontend/detail/fd.h"
#include "server/frontend/detail/peer_slots.h"

struct sockaddr_storage;

namespace tt::frontend {

struct Endpoint {
  std::string host;  // numeric
  std::uint16_t port = 0;
};

struct Connection {
  Fd fd;  // non-blocking
  Endpoint peer;
  Endpoint local;
  PeerSlot slot;           // of peer_group(peer.host)
  std::string head_begin;  // bytes of the next request's head that were taken from the socket
};

using ConnectionPtr = std::unique_ptr<Connection>;

// Key for per-peer limits: an IPv4 address, or the /64 prefix of an IPv6 address, because a
// network assigns whole /64 prefixes.
std::string peer_group(const std::string& host);

Endpoint to_endpoint(const sockaddr_storage& address);

// The local address of a socket; empty host on error.
Endpoint local_endpoint(int fd);

}  // namespace tt::frontend
