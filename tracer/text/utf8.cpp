#include "tracer/text/utf8.h"

#include <algorithm>

namespace tt {

Utf8Character utf8_character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, Utf8Character::Valid};
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0) return {1, Utf8Character::Invalid};
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Utf8Character::Incomplete};
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (i == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return {i, Utf8Character::Invalid};
  }
  return {length, Utf8Character::Valid};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character next = utf8_character_at(text);
    if (next.state != Utf8Character::Valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  constexpr std::size_t kMaxLength = 4;  // of a character; invalid text is cut anywhere
  const std::size_t least = bytes - std::min(bytes, kMaxLength);
  std::size_t end = bytes;
  while (end > least && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Character next = utf8_character_at(bytes);
    text += next.state == Utf8Character::Valid ? bytes.substr(0, next.length) : kReplacement;
    bytes.remove_prefix(next.length);
  }
  return text;
}

}  // namespace tt
