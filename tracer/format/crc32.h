// CRC-32 as zlib's crc32() (IEEE 802.3, reflected): the last column of every
// row in a session file. Fed in pieces; a value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tt {

class Crc32 {
 public:
  constexpr void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) add(static_cast<std::uint8_t>(b));
  }
  // Little-endian, 8 bytes.
  constexpr void add_u64(std::uint64_t v) {
    for (int i = 0; i < 8; ++i) add(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  constexpr std::uint32_t value() const { return ~state_; }

 private:
  constexpr void add(std::uint8_t b) { state_ = kTable[(state_ ^ b) & 0xFFu] ^ (state_ >> 8); }

  static constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c & 1u) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      table[i] = c;
    }
    return table;
  }();

  std::uint32_t state_ = 0xFFFFFFFFu;
};

}  // namespace tt
