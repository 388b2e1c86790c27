// Text as it is compared when case does not matter.
#pragma once

#include <string>
#include <string_view>

namespace tt {

// Every letter of any script in lower case. What is no UTF-8 stays as it is.
std::string fold_case(std::string_view text);

}  // namespace tt
