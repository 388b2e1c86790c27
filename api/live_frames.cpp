#include "api/live_frames.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <format>

namespace tt {

namespace {

constexpr std::uint32_t kMagic = 0x31465454;  // "TTF1"
constexpr std::uint16_t kOps = 1;
constexpr std::uint16_t kComplete = 1, kWithdrawn = 2;
constexpr std::size_t kHeader = 32;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }
constexpr std::size_t size_of(std::size_t rows) {
  return kHeader + padded(4 * rows) + 2 * 8 * rows;
}

template <class T>
void put(std::vector<std::byte>& out, std::size_t at, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(out.data() + at, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> in, std::size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return value;
}

}  // namespace

std::vector<std::byte> encode(const OpsFrame& frame) {
  const std::size_t rows = frame.begin.size();
  assert(frame.end.size() == rows);
  std::vector<std::byte> out(size_of(rows));
  put(out, 0, kMagic);
  put(out, 4, kOps);
  put(out, 6,
      static_cast<std::uint16_t>((frame.complete ? kComplete : 0) |
                                 (frame.withdrawn ? kWithdrawn : 0)));
  put(out, 8, frame.subscription);
  put(out, 12, frame.step.v);
  put(out, 16, frame.first.v);
  put(out, 20, static_cast<std::uint32_t>(rows));
  const std::size_t begin = kHeader + padded(4 * rows);
  for (std::size_t i = 0; i < rows; ++i) {
    put(out, kHeader + 4 * i, frame.first.v + static_cast<std::uint32_t>(i));
    put(out, begin + 8 * i, static_cast<double>(frame.begin[i].v));
    put(out, begin + 8 * (rows + i), static_cast<double>(frame.end[i].v));
  }
  return out;
}

std::expected<OpsFrame, std::string> decode_ops_frame(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeader || get<std::uint32_t>(bytes, 0) != kMagic)
    return std::unexpected("a live frame begins with a header of 32 bytes and TTF1");
  if (const auto kind = get<std::uint16_t>(bytes, 4); kind != kOps)
    return std::unexpected(std::format("a live frame has the unknown kind {}", kind));
  const std::size_t rows = get<std::uint32_t>(bytes, 20);
  if (bytes.size() != size_of(rows)) {
    return std::unexpected(std::format("a live frame of {} rows has {} bytes instead of {}", rows,
                                       bytes.size(), size_of(rows)));
  }
  const auto flags = get<std::uint16_t>(bytes, 6);
  OpsFrame frame{.subscription = get<std::uint32_t>(bytes, 8),
                 .step = StepId{get<std::uint32_t>(bytes, 12)},
                 .first = OpId{get<std::uint32_t>(bytes, 16)},
                 .complete = (flags & kComplete) != 0,
                 .withdrawn = (flags & kWithdrawn) != 0,
                 .begin = {},
                 .end = {}};
  const std::size_t begin = kHeader + padded(4 * rows);
  for (std::size_t i = 0; i < rows; ++i) {
    if (get<std::uint32_t>(bytes, kHeader + 4 * i) != frame.first.v + i)
      return std::unexpected(std::format("row {} of a live frame is not the next op", i));
    frame.begin.push_back(Ns{static_cast<std::int64_t>(get<double>(bytes, begin + 8 * i))});
    frame.end.push_back(Ns{static_cast<std::int64_t>(get<double>(bytes, begin + 8 * (rows + i)))});
  }
  return frame;
}

}  // namespace tt
