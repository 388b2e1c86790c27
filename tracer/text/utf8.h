// UTF-8 (RFC 3629; Unicode's table 3-7): neither overlong, nor a surrogate, nor above
// U+10FFFF. Stands on nothing else here, so that the door can look at text, too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tt {

struct Utf8Character {
  std::size_t length = 1;  // bytes; of an invalid one, those that cannot begin another
  enum { Valid, Invalid, Incomplete } state = Invalid;
};
// The character at the start of `text`, which is not empty.
Utf8Character utf8_character_at(std::string_view text);

bool is_utf8(std::string_view text);

inline constexpr std::string_view kReplacement = "\uFFFD";
// `bytes` as valid UTF-8: what is not is replaced by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

}  // namespace tt
