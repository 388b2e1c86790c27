#include "tracer/format/file/byte_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/sessions/random_session.h"
#include "tests/tracer/format/file/blob_bytes.h"
#include "tracer/format/file/crc32.h"

namespace tt {
namespace {

using test::bytes;
using test::Dice;

TEST(Crc32, MatchesZlib) {
  Crc32 crc;
  crc.add(std::as_bytes(std::span("123456789", 9)));
  EXPECT_EQ(crc.value(), 0xCBF43926u);
}

// Bit by bit, from the polynomial.
std::uint32_t slow_crc(std::span<const std::byte> data) {
  std::uint32_t c = 0xFFFFFFFFu;
  for (const std::byte b : data) {
    c ^= static_cast<std::uint8_t>(b);
    for (int k = 0; k < 8; ++k) c = (c & 1u) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}

TEST(Crc32, DoesNotDependOnChunkSizes) {
  Dice dice(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> data(dice.size(dice.one_in(2) ? 100 : 1000));
    for (auto& b : data) b = static_cast<std::byte>(dice.bits());
    Crc32 whole, pieces, single;
    whole.add(data);
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t n = 1 + dice.size(data.size() - at - 1);
      pieces.add(std::span(data).subspan(at, n));
      at += n;
    }
    for (const std::byte& b : data) single.add(std::span(&b, 1));
    const std::uint32_t expected = slow_crc(data);
    EXPECT_EQ(whole.value(), expected);
    EXPECT_EQ(pieces.value(), expected);
    EXPECT_EQ(single.value(), expected);
  }
}

TEST(ByteCodec, WritesVarintsAsLeb128) {
  const std::pair<std::uint64_t, Blob> cases[] = {
      {0, bytes({0})},
      {127, bytes({0x7f})},
      {128, bytes({0x80, 0x01})},
      {300, bytes({0xac, 0x02})},
      {~0ull, bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})},
  };
  for (const auto& [value, expected] : cases) {
    ByteWriter out;
    out.varint(value);
    EXPECT_EQ(out.take(), expected) << value;
    ByteReader in(expected);
    EXPECT_EQ(in.varint(), value);
    in.expect_end();
    EXPECT_TRUE(in.ok());
  }
}

TEST(ByteCodec, EncodesSmallSignedNumbersInFewBytes) {
  const std::pair<std::int64_t, Blob> cases[] = {
      {0, bytes({0})}, {-1, bytes({1})}, {1, bytes({2})}, {-64, bytes({127})}};
  for (const auto& [value, expected] : cases) {
    ByteWriter out;
    out.zigzag(value);
    EXPECT_EQ(out.take(), expected) << value;
  }
  for (const std::int64_t value : {INT64_MIN, INT64_MAX}) {
    ByteWriter out;
    out.zigzag(value);
    const Blob blob = out.take();
    EXPECT_EQ(ByteReader(blob).zigzag(), value);
  }
}

TEST(ByteCodec, RejectsNumbersOfMoreThan64Bits) {
  for (const int last : {0x02, 0x7f, 0x80}) {
    const Blob blob = bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, last, 0, 0, 0});
    ByteReader in(blob);
    in.varint();
    EXPECT_FALSE(in.ok()) << last;
  }
}

TEST(ByteReader, SkipsGivenNumberOfVarints) {
  Dice dice(12);
  for (std::size_t n = 0; n < 300; ++n) {
    ByteWriter out;
    for (std::size_t i = 0; i < n; ++i) out.varint(dice.any_u64());
    const std::size_t end = out.size();
    for (int i = 0; i < 100; ++i) out.varint(7);
    ByteReader in(out.bytes());
    in.skip_varints(n);
    ASSERT_TRUE(in.ok());
    ASSERT_EQ(in.position(), end) << n;
    ByteReader cut(out.bytes().first(end));
    cut.skip_varints(n + 1);
    ASSERT_FALSE(cut.ok());
  }
}

}  // namespace
}  // namespace tt
