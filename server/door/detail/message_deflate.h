// permessage-deflate (RFC 7692). libwebsockets agrees on it and carries the bit that says
// which message is compressed; zlib does the rest here, since what that library has for
// it ends the process at an empty message. What is sent is compressed by itself; what is
// received may lean on what was received before. Not thread-safe.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <vector>

namespace tt::door {

// Whether Sec-WebSocket-Extensions offers it once, in a way that needs no word in the
// answer but an echo: libwebsockets gives back parameters without a value.
bool offers_deflate(std::string_view extensions);

// What is shorter does not get smaller, or hardly.
inline constexpr std::size_t kLeastToDeflate = 256;

class Deflater {
 public:
  Deflater();
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // The message as it travels, behind `room` bytes for who sends it. Empty: it would
  // not be smaller.
  std::vector<unsigned char> deflate(std::span<const unsigned char> message, std::size_t room);

 private:
  z_stream stream_{};
};

// Of one client.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  enum class Failure { TooLarge, Damaged };
  // What a message of at most `most` bytes was. After a failure the stream is of no use.
  std::expected<std::vector<std::byte>, Failure> inflate(std::span<const std::byte> message,
                                                         std::size_t most);

 private:
  z_stream stream_{};
};

}  // namespace tt::door
