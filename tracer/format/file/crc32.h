// CRC-32 as zlib's crc32() (IEEE 802.3, reflected): the last column of every row in a
// session file. Incremental; a value. Processes eight bytes at a time (slicing by eight,
// Kounavis and Berry), and long inputs with carry-less multiplication if the processor
// has it, because queries over a long session read the whole file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tt {

class Crc32 {
 public:
  constexpr void add(std::span<const std::byte> bytes) {
    if !consteval {
      if (bytes.size() >= kLong) bytes = bytes.subspan(add_folded(bytes));
    }
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      std::uint64_t v = 0;
      for (std::size_t i = 0; i < 8; ++i)
        v |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
      add_u64(v);
    }
    for (const std::byte b : bytes) add(static_cast<std::uint8_t>(b));
  }
  // Little-endian, 8 bytes.
  constexpr void add_u64(std::uint64_t v) {
    v ^= state_;
    state_ = 0;
    for (std::size_t i = 0; i < 8; ++i) state_ ^= kTables[7 - i][(v >> (8 * i)) & 0xFFu];
  }
  constexpr std::uint32_t value() const { return ~state_; }

 private:
  static constexpr std::size_t kLong = 64;
  // Returns the number of bytes processed; 0 if the processor lacks the instructions.
  std::size_t add_folded(std::span<const std::byte> bytes);
  constexpr void add(std::uint8_t b) { state_ = kTables[0][(state_ ^ b) & 0xFFu] ^ (state_ >> 8); }

  // Table k: effect of a byte on the state when k more bytes follow.
  static constexpr std::array<std::array<std::uint32_t, 256>, 8> kTables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c & 1u) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      tables[0][i] = c;
    }
    for (std::size_t k = 1; k < 8; ++k)
      for (std::size_t i = 0; i < 256; ++i)
        tables[k][i] = tables[0][tables[k - 1][i] & 0xFFu] ^ (tables[k - 1][i] >> 8);
    return tables;
  }();

  std::uint32_t state_ = 0xFFFFFFFFu;
};

}  // namespace tt
