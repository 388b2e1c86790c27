// Name under which handlers see the Range header. It is renamed because cpp-httplib would
// apply Range to every response, including JSON, and reject malformed values; most responses
// do not support ranges and ignore the header (RFC 9110).
#pragma once

namespace tt {

inline constexpr const char* kRangeField = "Parts";  // same length as "Range"

}  // namespace tt
