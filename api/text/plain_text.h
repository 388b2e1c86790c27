// Text from anywhere (files, requests, names) for a terminal or a log. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tt {

// With every control character (C0, DEL, and C1 in UTF-8) as \x and its bytes in hex, so
// that nothing is left that a terminal would obey, nor a line break; those in `kept` stay.
std::string plain_text(std::string_view text, std::string_view kept = {});

}  // namespace tt
