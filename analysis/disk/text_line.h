// Lines of a text of another program, which may be any file.
#pragma once

#include <array>
#include <istream>
#include <string>

namespace tt {

// Reads the next line, without its end. False: the end of the text, or is_too_long().
inline bool read_line(std::istream& in, std::string& line) {
  constexpr std::size_t kMaxLine = 64U << 10;  // with the longest path
  std::array<char, kMaxLine> text;
  if (!in.getline(text.data(), text.size())) return false;
  line.assign(text.data(), static_cast<std::size_t>(in.gcount()) - (in.eof() ? 0 : 1));
  return true;
}
// The line at which read_line() stopped does not end: no text.
inline bool is_too_long(const std::istream& in) { return in.fail() && !in.eof() && !in.bad(); }

}  // namespace tt
