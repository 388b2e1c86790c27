// Encoding and decoding of the primitives in blobs (docs/trace-format.md, "Blobs").
//
// ByteReader accepts untrusted input. It never reads past the end. After the first error it
// stays in the error state and returns zeros, so that a decoder can check ok() once at the
// end. Counts are checked against the remaining bytes before the caller allocates.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

class ByteWriter {
 public:
  void u8(std::uint8_t v) { bytes_.push_back(static_cast<std::byte>(v)); }
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) u8(static_cast<std::uint8_t>(v | 0x80));
    u8(static_cast<std::uint8_t>(v));
  }
  void zigzag(std::int64_t v) {
    varint((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void f32(float v) {
    const auto bits = std::bit_cast<std::uint32_t>(v);
    for (int i = 0; i < 4; ++i) u8(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
  void text(std::string_view s) {
    varint(s.size());
    append(std::as_bytes(std::span(s)));
  }
  // `none` becomes 0, everything else index + 1.
  void ref(std::uint32_t index, std::uint32_t none) {
    varint(index == none ? 0 : std::uint64_t{index} + 1);
  }
  void append(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Error in a blob and its byte offset. `what` is a string literal.
struct DecodeError {
  const char* what = "";
  std::size_t offset = 0;
  std::string text() const { return std::string(what) + " at byte " + std::to_string(offset); }
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return error_.what[0] == '\0'; }
  const DecodeError& error() const { return error_; }
  std::size_t position() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }
  void fail(const char* what) {
    if (!ok()) return;
    error_ = {what, at_};
    at_ = bytes_.size();  // stop reading
  }
  // Call last: the blob must end with its last field.
  void expect_end() {
    if (ok() && remaining() != 0) fail("trailing bytes");
  }

  std::uint8_t u8() {
    if (remaining() < 1) return fail("unexpected end of the blob"), std::uint8_t{0};
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::uint64_t varint() {
    // Fast path: most are one byte.
    if (remaining() >= 1 && static_cast<std::uint8_t>(bytes_[at_]) < 0x80)
      return static_cast<std::uint8_t>(bytes_[at_++]);
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = u8();
      if (!ok()) return 0;
      if (shift == 63 && b > 1) break;
      v |= static_cast<std::uint64_t>(b & 0x7Fu) << shift;
      if (b < 0x80) return v;
    }
    fail("a number is too long");
    return 0;
  }
  // Reads out.size() varints. While at least 10 bytes remain, no varint can pass the end, and
  // only its length is checked.
  void varints(std::span<std::uint64_t> out) {
    std::size_t i = 0;
    for (; i < out.size() && remaining() >= 10; ++i) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(bytes_.data()) + at_;
      std::uint64_t v = at[0] & 0x7Fu;
      std::size_t n = 1;
      for (; at[n - 1] >= 0x80 && n < 10; ++n)
        v |= static_cast<std::uint64_t>(at[n] & 0x7Fu) << (7 * n);
      if (n == 10 && at[9] > 1) return fail("a number is too long");
      out[i] = v;
      at_ += n;
    }
    for (; i < out.size(); ++i) out[i] = varint();
  }
  // Skips `n` varints by counting their last bytes, without decoding them.
  void skip_varints(std::size_t n) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    while (n >= 64 && remaining() >= 64) {
      std::uint64_t ends = 0;  // per byte of a word, the number of varints that end there
      for (std::size_t i = 0; i < 64; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes_.data() + at_ + i, 8);
        ends += (~word >> 7) & kOnes;
      }
      n -= static_cast<std::size_t>((ends * kOnes) >> 56);
      at_ += 64;
    }
    while (n >= 8 && remaining() >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes_.data() + at_, 8);
      n -= static_cast<std::size_t>((((~word >> 7) & kOnes) * kOnes) >> 56);  // varint ends
      at_ += 8;
    }
    for (; ok() && n > 0; --n)
      while (u8() >= 0x80) continue;
  }
  void skip(std::size_t n) {
    if (n > remaining()) return fail("unexpected end of the blob");
    at_ += n;
  }
  std::int64_t zigzag() {
    const std::uint64_t v = varint();
    return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1));
  }
  // Calls `each` for `n` values in order; stops at the first error.
  template <class Each>
  void zigzags(std::size_t n, Each each) {
    while (n > 0) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(bytes_.data()) + at_;
      const auto* stop = from + std::min(n, remaining());
      const auto* at = from;
      for (; at != stop && *at < 0x80; ++at)
        each((std::int64_t{*at} >> 1) ^ -(std::int64_t{*at} & 1));
      const auto done = static_cast<std::size_t>(at - from);
      at_ += done;
      n -= done;
      if (n == 0) return;
      const std::int64_t longer = zigzag();
      if (!ok()) return;
      each(longer);
      --n;
    }
  }
  std::uint32_t varint32() {
    const std::uint64_t v = varint();
    if (v > 0xFFFFFFFFu) return fail("a number is too large"), 0u;
    return static_cast<std::uint32_t>(v);
  }
  std::int32_t zigzag32() {
    const std::int64_t v = zigzag();
    if (v < INT32_MIN || v > INT32_MAX) return fail("a number is too large"), 0;
    return static_cast<std::int32_t>(v);
  }
  float f32() {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(u8()) << (8 * i);
    return std::bit_cast<float>(bits);
  }
  std::string text() {
    const std::size_t n = count(1);
    std::string s(n, '\0');
    if (n != 0) std::memcpy(s.data(), bytes_.data() + at_, n);
    at_ += n;
    return s;
  }
  std::uint32_t ref(std::uint32_t none) {
    const std::uint32_t v = varint32();
    return v == 0 ? none : v - 1;
  }
  // A count of items of at least `bytes_each` bytes; fails if they exceed the remaining bytes.
  std::size_t count(std::size_t bytes_each) {
    const std::uint64_t n = varint();
    if (n > remaining() / bytes_each)
      return fail("a count exceeds the remaining bytes"), std::size_t{0};
    return static_cast<std::size_t>(n);
  }
  // An enum value no greater than `last`.
  template <class Enum>
  Enum enum_value(Enum last) {
    const std::uint8_t v = u8();
    if (v > static_cast<std::uint8_t>(last)) fail("an unknown enum value");
    return ok() ? static_cast<Enum>(v) : Enum{};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  DecodeError error_;
};

}  // namespace tt
