// Builds the HTTP front end options (limits, rules, rejection format) from the server options.
#pragma once

#include "server/app/server_options.h"
#include "server/frontend/frontend.h"

namespace tt {

// options.api_key.key must be the loaded key (load_api_key()).
HttpFrontendOptions frontend_options(const ServerOptions& options);

}  // namespace tt
