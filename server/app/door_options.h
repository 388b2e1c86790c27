// Builds the HTTP front end options (limits, rules, rejection format) from the server options.
#pragma once

#include "server/app/server_options.h"
#include "server/door/door.h"

namespace tt {

// options.api_key.key must be the loaded key (load_api_key()).
DoorOptions door_options(const ServerOptions& options);

}  // namespace tt
