// The API specification (api/openapi.yaml) as JSON text, served as /api/openapi.json: the
// whole document with the version of this build. Embedded at build time, so no file is needed
// at run time. The text has static lifetime.
#pragma once

#include <string_view>

namespace tt {

std::string_view openapi_json();

}  // namespace tt
