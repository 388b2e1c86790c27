// UTF-8 decoding (RFC 3629; Unicode table 3-7): overlong forms, surrogates and values above
// U+10FFFF are invalid. Has no dependencies, so that the HTTP front end can use it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tt {

struct Utf8Character {
  std::size_t length = 1;  // bytes; if invalid, the bytes to skip
  enum { Valid, Invalid, Incomplete } state = Invalid;
};
// The character at the start of `text`, which must not be empty.
Utf8Character utf8_character_at(std::string_view text);

bool is_utf8(std::string_view text);

// The begin of `text`: at most `bytes` bytes, which do not end within a character.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes);

inline constexpr std::string_view kReplacement = "\uFFFD";
// `bytes` as valid UTF-8: invalid bytes are replaced by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

}  // namespace tt
