// Generates secrets and compares them in constant time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tt {

// `bytes` random bytes of the operating system, in hexadecimal.
std::string random_secret(std::size_t bytes = 32);

// Returns true when both are equal. The time depends only on the length of `given`, which the
// sender knows. An empty secret never matches.
bool constant_time_equal(std::string_view secret, std::string_view given);

}  // namespace tt
