// Whether bytes are UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <span>

namespace tt::door {

bool is_utf8(std::span<const std::byte> text);

}  // namespace tt::door
