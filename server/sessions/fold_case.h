// Case folding for case-insensitive comparison.
#pragma once

#include <string>
#include <string_view>

namespace tt {

// Returns `text` with all letters of all scripts in lower case. Bytes that are not valid UTF-8
// are kept.
std::string fold_case(std::string_view text);

}  // namespace tt
