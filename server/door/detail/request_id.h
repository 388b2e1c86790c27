// The name that a request has in logs.
#pragma once

#include <string>
#include <string_view>

#include "server/door/detail/request_head.h"

namespace tt::door {

inline constexpr const char* kRequestIdField = "X-Request-Id";

// The client's, where it gave exactly one of 1 to 64 letters, digits, '.', '_'
// and '-'; else a new one, 16 hexadecimal digits by chance.
std::string request_id_of(const RequestHead& head);

}  // namespace tt::door
