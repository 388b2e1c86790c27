// Reads the lines of an untrusted text file.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

namespace tt::exchange {

inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

// Returns false at the end of the file. An overlong line is truncated, and is then invalid.
inline bool read_line(std::istream& in, std::string& line) {
  line.clear();
  for (int c = in.get(); c != std::char_traits<char>::eof(); c = in.get()) {
    if (c == '\n') return true;
    if (line.size() < kMaxLineBytes) line += static_cast<char>(c);
  }
  return !line.empty();
}

}  // namespace tt::exchange
