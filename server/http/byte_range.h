// The Range of a request for bytes (RFC 9110, 14.2), one at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

namespace tt {

struct ByteRange {
  std::uint64_t first = 0, bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct NoSuchRange {};

// What `field` asks for of `size` bytes. All of them where it asks for several
// ranges, or for none that it says how to: it may be ignored then.
std::expected<ByteRange, NoSuchRange> byte_range(std::string_view field, std::uint64_t size);

}  // namespace tt
