// Reads the lines of an untrusted text file.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

namespace tt::exchange {

inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

// Returns false at the end of the file. An overlong line ends where it is too long, and is then
// invalid: the rest of a sparse file can have any length.
inline bool read_line(std::istream& in, std::string& line) {
  line.clear();
  for (int c = in.get(); c != std::char_traits<char>::eof(); c = in.get()) {
    if (c == '\n') return true;
    line += static_cast<char>(c);
    if (line.size() == kMaxLineBytes) return true;
  }
  return !line.empty();
}

}  // namespace tt::exchange
