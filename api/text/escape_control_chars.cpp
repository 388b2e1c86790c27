#include "api/text/escape_control_chars.h"

#include <algorithm>
#include <cstddef>
#include <format>

namespace tt {

namespace {

// C0, DEL, or the two UTF-8 bytes of a C1 character.
std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  return byte(0) == 0xC2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) <= 0x9F ? 2 : 0;
}

}  // namespace

std::string escape_control_chars(std::string_view text, std::string_view allowed) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t control = allowed.contains(text.front()) ? 0 : control_bytes(text);
    for (std::size_t i = 0; i < control; ++i)
      out += std::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    if (control == 0) out += text.front();
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return out;
}

}  // namespace tt
