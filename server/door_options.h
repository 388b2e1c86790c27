// The door as this server needs it: its limits, its rules, how refusals look.
#pragma once

#include "server/door/door.h"
#include "server/server_options.h"

namespace tt {

// options.api_key.key is the key itself (load_api_key()).
DoorOptions door_options(const ServerOptions& options);

}  // namespace tt
