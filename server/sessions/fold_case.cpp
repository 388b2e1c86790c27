#include "server/sessions/fold_case.h"

#include <locale.h>  // POSIX's newlocale()
#include <wctype.h>  // NOLINT(modernize-deprecated-headers): POSIX's towlower_l()

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tt {

namespace {

struct FreeLocale {
  void operator()(locale_t locale) const noexcept { freelocale(locale); }
};
using Locale = std::unique_ptr<std::remove_pointer_t<locale_t>, FreeLocale>;

// The code point at the start of `text`; bytes is 0 when `text` does not start with valid
// UTF-8.
struct CodePoint {
  wint_t code = 0;  // wchar_t holds a code point in this C library
  std::size_t bytes = 0;
};

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  constexpr std::array<std::uint32_t, 5> kMinCode = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned lead = byte(0);
  const std::size_t bytes = lead < 0x80             ? 1
                            : (lead & 0xe0) == 0xc0 ? 2
                            : (lead & 0xf0) == 0xe0 ? 3
                            : (lead & 0xf8) == 0xf0 ? 4
                                                    : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  std::uint32_t code = bytes == 1 ? lead : lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  if (code < kMinCode[bytes] || code > 0x10ffff) return {};
  return {code, bytes};
}

void append(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::array<std::uint32_t, 4> kLead = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[static_cast<std::size_t>(more)] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

}  // namespace

std::string fold_case(std::string_view text) {
  // Available on every Debian. Without it the comparison is case-sensitive.
  static const Locale unicode(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr));
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint code_point = first_code_point(text);
    if (code_point.bytes == 0) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const wint_t lower = unicode ? towlower_l(code_point.code, unicode.get()) : code_point.code;
    append(out, lower);
    text.remove_prefix(code_point.bytes);
  }
  return out;
}

}  // namespace tt
