// The Range of a request, as handlers see it: under another name. Under its own
// the HTTP library would cut every answer by it, JSON as well, and refuse what it
// cannot read; most answers have no parts, so there it means nothing (RFC 9110).
#pragma once

namespace tt {

inline constexpr const char* kRangeField = "Parts";  // as long as "Range"

}  // namespace tt
