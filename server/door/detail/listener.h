// Opens the listening socket. Ours rather than cpp-httplib's: that one sets
// SO_REUSEPORT, so a second server on a taken port would start and share its
// connections, keeps a backlog of 5, and hides why binding failed.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "server/door/detail/connection.h"
#include "server/door/door.h"

namespace tt::door {

struct Listener {
  Fd fd;  // non-blocking, listening
  Endpoint local;
  bool any_address = false;  // bound to 0.0.0.0 or ::
};

// Port 0: any free one.
std::expected<Listener, DoorError> open_listener(const std::string& host, std::uint16_t port);

}  // namespace tt::door
