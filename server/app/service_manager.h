// Reports the service state to systemd: sd_notify(3) without libsystemd.
#pragma once

#include <string_view>

namespace tt {

// Sends `state` ("READY=1", "STOPPING=1") to the socket named by NOTIFY_SOCKET. Returns false
// when the variable is not set or sending fails; the caller can ignore this.
bool notify_service_manager(std::string_view state);

}  // namespace tt
