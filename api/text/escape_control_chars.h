// Makes untrusted text (from files, requests, names) safe for a terminal or log. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace tt {

// Escapes every control character (C0, DEL, and C1 in UTF-8) and every byte that is not UTF-8 as \x
// and two hex digits per byte, including line breaks. Characters in `allowed` are not escaped.
std::string escape_control_chars(std::string_view text, std::string_view allowed = {});

}  // namespace tt
