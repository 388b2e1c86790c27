// Opens the listening socket. cpp-httplib is not used for this, because it sets SO_REUSEPORT
// (a second server on the same port would start and share its connections), uses a backlog of
// 5, and does not report why binding failed.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "server/frontend/detail/connection.h"
#include "server/frontend/frontend.h"

namespace tt::frontend {

struct Listener {
  Fd fd;  // non-blocking, listening
  Endpoint local;
  bool any_address = false;  // bound to 0.0.0.0 or ::
};

// Port 0: any free port.
std::expected<Listener, HttpFrontendError> open_listener(const std::string& host,
                                                         std::uint16_t port);

}  // namespace tt::frontend
