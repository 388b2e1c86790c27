// Checks the framing of a chunked request body (RFC 9112 7.1) while its bytes are read.
// cpp-httplib accepts sizes that other programs read differently ("+5", "0x5", " 5", "5" followed
// by a NUL), so that two programs could disagree about where the next request begins (request
// smuggling).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tt::frontend {

class ChunkFraming {
 public:
  static constexpr std::size_t kMaxSizeDigits = 16;       // leading zeros included
  static constexpr std::size_t kMaxExtensionBytes = 256;  // of a chunk
  static constexpr std::size_t kMaxTrailerBytes = 8192;   // all trailer fields

  // Takes the next bytes of the body. Returns what is wrong with them, or an empty text. After an
  // error the object is of no further use.
  std::string_view take(std::string_view bytes);

  std::uint64_t data_bytes() const { return data_bytes_; }  // sum of all chunk sizes so far

 private:
  enum class State : std::uint8_t {
    Size,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    TrailerLine,
    TrailerLineFeed,
    End,
  };
  std::string_view take_one(unsigned char c);
  std::string_view end_size_line();

  State state_ = State::Size;
  std::uint64_t size_ = 0;   // of the current chunk
  std::uint64_t left_ = 0;   // bytes of its data that are not read yet
  std::size_t digits_ = 0;   // of its size
  std::size_t ignored_ = 0;  // bytes of its extension, or of the trailer
  std::size_t line_ = 0;     // bytes of the current trailer line
  std::uint64_t data_bytes_ = 0;
};

}  // namespace tt::frontend
