// permessage-deflate (RFC 7692). libwebsockets negotiates it and carries the bit that marks a
// compressed message. Compression itself uses zlib, because the implementation in
// libwebsockets aborts the process on an empty message. Sent messages are compressed
// independently; received messages may refer to earlier ones. Not thread-safe.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <vector>

namespace tt::frontend {

// Returns true when Sec-WebSocket-Extensions offers it once, with parameters that can be
// accepted by echoing them: libwebsockets echoes parameters without a value.
bool offers_deflate(std::string_view extensions);

// Shorter messages are sent uncompressed: compression hardly reduces them.
inline constexpr std::size_t kMinDeflateBytes = 256;

class Deflater {
 public:
  Deflater();
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // Returns the compressed message after `room` reserved bytes. Empty when it would not be
  // smaller.
  std::vector<unsigned char> deflate(std::span<const unsigned char> message, std::size_t room);

 private:
  z_stream stream_{};
};

// Decompressor of one client.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  enum class Failure { TooLarge, Damaged };
  // Decompresses a message of at most `max_bytes` bytes. ConnectionAction an error the stream must
  // not be used.
  std::expected<std::vector<std::byte>, Failure> inflate(std::span<const std::byte> message,
                                                         std::size_t max_bytes);

 private:
  z_stream stream_{};
};

}  // namespace tt::frontend
