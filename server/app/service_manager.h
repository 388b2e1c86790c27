// Tells systemd how far the service is: sd_notify(3) without its library.
#pragma once

#include <string_view>

namespace tt {

// Sends `state` ("READY=1", "STOPPING=1") to the socket that the service
// manager named in NOTIFY_SOCKET. False when there is none or it does not take
// it, which is nothing that the service need mind.
bool tell_service_manager(std::string_view state);

}  // namespace tt
