// Request ids for logs.
#pragma once

#include <string>
#include <string_view>

#include "server/frontend/detail/request_head.h"

namespace tt::frontend {

inline constexpr const char* kRequestIdField = "X-Request-Id";

// Returns the id sent by the client if it sent exactly one of 1 to 64 letters, digits, '.',
// '_' and '-'; otherwise a new random one of 16 hexadecimal digits.
std::string request_id_of(const RequestHead& head);

}  // namespace tt::frontend
