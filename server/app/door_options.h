// The door as this server needs it: its limits, its rules, how refusals look.
#pragma once

#include "server/app/server_options.h"
#include "server/door/door.h"

namespace tt {

// options.api_key.key is the key itself (load_api_key()).
DoorOptions door_options(const ServerOptions& options);

}  // namespace tt
