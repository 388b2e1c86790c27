#include "server/door/detail/utf8.h"

#include <algorithm>
#include <cstdint>

namespace tt::door {
namespace {

struct Form {
  std::uint8_t from, to;                // first byte
  std::uint8_t second_from, second_to;  // what follows it, but for the first: 80 to BF
  std::size_t more;
};
// Neither overlong, nor a surrogate, nor above U+10FFFF.
constexpr Form kForms[] = {
    {0x00, 0x7f, 0, 0, 0},       {0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
    {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
    {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3}};

}  // namespace

bool is_utf8(std::span<const std::byte> text) {
  while (!text.empty()) {
    const auto first = std::to_integer<std::uint8_t>(text[0]);
    const auto* form = std::ranges::find_if(
        kForms, [&](const Form& f) { return first >= f.from && first <= f.to; });
    if (form == std::end(kForms) || text.size() <= form->more) return false;
    for (std::size_t i = 1; i <= form->more; ++i) {
      const auto next = std::to_integer<std::uint8_t>(text[i]);
      const bool second = i == 1;
      if (next < (second ? form->second_from : 0x80) || next > (second ? form->second_to : 0xbf))
        return false;
    }
    text = text.subspan(form->more + 1);
  }
  return true;
}

}  // namespace tt::door
