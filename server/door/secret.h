// Secrets: where they come from, and how one is compared with what a stranger
// sent.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tt {

// `bytes` bytes of the system's randomness, in hexadecimal.
std::string random_secret(std::size_t bytes = 32);

// Whether they are equal. The time it takes depends on the length of `given`
// alone, which whoever sent it knows. An empty secret equals nothing.
bool is_secret(std::string_view secret, std::string_view given);

}  // namespace tt
