// Parses the Range header of a request (RFC 9110, 14.2). Supports one byte range.
#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

namespace tt {

struct ByteRange {
  std::uint64_t first = 0, bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct UnsatisfiableRange {};

// Returns the range of a resource of `size` bytes that `field` selects. Returns the whole
// resource when the field is malformed, has another unit or lists several ranges: such a field
// may be ignored. Error: the range is not satisfiable.
std::expected<ByteRange, UnsatisfiableRange> byte_range(std::string_view field, std::uint64_t size);

}  // namespace tt
