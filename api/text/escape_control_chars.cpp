#include "api/text/escape_control_chars.h"

#include <cstddef>
#include <format>

#include "tracer/text/utf8.h"

namespace tt {

namespace {

// C0, DEL, C1 as UTF-8, or a byte that is no UTF-8: a terminal may take 0x80 to 0x9f for C1.
bool is_escaped(std::string_view character, bool is_valid) {
  const auto first = static_cast<unsigned char>(character.front());
  if (first < 0x80) return first < 0x20 || first == 0x7F;
  return !is_valid || (first == 0xC2 && static_cast<unsigned char>(character[1]) <= 0x9F);
}

}  // namespace

std::string escape_control_chars(std::string_view text, std::string_view allowed) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character at = utf8_character_at(text);
    const std::string_view character = text.substr(0, at.length);
    text.remove_prefix(character.size());
    if (allowed.contains(character.front()) ||
        !is_escaped(character, at.state == Utf8Character::Valid)) {
      out += character;
      continue;
    }
    for (const char byte : character)
      out += std::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

}  // namespace tt
