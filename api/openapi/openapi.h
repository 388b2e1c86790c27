// The contract (api/openapi.yaml) as the JSON text that /api/openapi.json serves:
// the whole document with this build's version, made when the program was built,
// so that it needs no file at run time. The text lives as long as the program.
#pragma once

#include <string_view>

namespace tt {

std::string_view openapi_json();

}  // namespace tt
