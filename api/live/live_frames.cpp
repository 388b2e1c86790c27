#include "api/live/live_frames.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <format>

namespace tt {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kMagic = 0x31465454;  // "TTF1"
constexpr std::uint16_t kOps = 1, kRouting = 2;
constexpr std::uint16_t kComplete = 1, kWithdrawn = 2;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t kind = 0, flags = 0;
  std::uint32_t subscription = 0, step = 0, first = 0, rows = 0;
  std::int32_t layer = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Header) == 32);

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

constexpr std::size_t size_of(std::uint16_t kind, std::size_t rows) {
  return sizeof(Header) + (kind == kOps ? padded(4 * rows) + 16 * rows : 4 * padded(4 * rows));
}

// Consecutive columns, each starting at a multiple of 8 bytes.
class Columns {
 public:
  explicit Columns(std::size_t rows) : rows_(rows) {}
  template <class T>
  void put(std::vector<std::byte>& out, const T* values) {
    if (rows_ > 0) std::memcpy(out.data() + at_, values, rows_ * sizeof(T));
    at_ += padded(rows_ * sizeof(T));
  }
  template <class T>
  std::vector<T> get(std::span<const std::byte> in) {
    std::vector<T> values(rows_);
    if (rows_ > 0) std::memcpy(values.data(), in.data() + at_, rows_ * sizeof(T));
    at_ += padded(rows_ * sizeof(T));
    return values;
  }

 private:
  std::size_t rows_;
  std::size_t at_ = sizeof(Header);
};

std::vector<std::byte> begin_frame(const Header& header) {
  std::vector<std::byte> out(size_of(header.kind, header.rows));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::vector<double> doubles(const std::vector<Ns>& times) {
  std::vector<double> out;
  out.reserve(times.size());
  for (const Ns time : times) out.push_back(static_cast<double>(time.v));
  return out;
}

std::vector<Ns> times(const std::vector<double>& values) {
  std::vector<Ns> out;
  out.reserve(values.size());
  for (const double value : values) out.push_back(Ns{static_cast<std::int64_t>(value)});
  return out;
}

}  // namespace

std::vector<std::byte> encode(const OpsFrame& frame) {
  const std::size_t rows = frame.begin.size();
  assert(frame.end.size() == rows);
  auto out = begin_frame({.kind = kOps,
                          .flags = static_cast<std::uint16_t>((frame.complete ? kComplete : 0) |
                                                              (frame.withdrawn ? kWithdrawn : 0)),
                          .subscription = frame.subscription,
                          .step = frame.step.v,
                          .first = frame.first.v,
                          .rows = static_cast<std::uint32_t>(rows)});
  std::vector<std::uint32_t> ops(rows);
  for (std::size_t i = 0; i < rows; ++i) ops[i] = frame.first.v + static_cast<std::uint32_t>(i);
  Columns columns(rows);
  columns.put(out, ops.data());
  columns.put(out, doubles(frame.begin).data());
  columns.put(out, doubles(frame.end).data());
  return out;
}

std::vector<std::byte> encode(const RoutingFrame& frame) {
  const std::size_t rows = frame.token.size();
  assert(frame.expert.size() == rows && frame.rank.size() == rows && frame.score.size() == rows);
  auto out = begin_frame({.kind = kRouting,
                          .flags = frame.complete ? kComplete : std::uint16_t{0},
                          .subscription = frame.subscription,
                          .step = frame.step.v,
                          .first = frame.first,
                          .rows = static_cast<std::uint32_t>(rows),
                          .layer = frame.layer.v});
  Columns columns(rows);
  columns.put(out, frame.token.data());
  columns.put(out, frame.expert.data());
  columns.put(out, frame.rank.data());
  columns.put(out, frame.score.data());
  return out;
}

std::expected<LiveFrame, std::string> decode_live_frame(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() < sizeof header || header.magic != kMagic)
    return std::unexpected("a live frame must start with a 32-byte header with magic TTF1");
  if (header.kind != kOps && header.kind != kRouting)
    return std::unexpected(std::format("unknown live frame kind {}", header.kind));
  const std::size_t rows = header.rows;
  if (bytes.size() != size_of(header.kind, rows)) {
    return std::unexpected(std::format("a live frame of {} rows has {} bytes, expected {}", rows,
                                       bytes.size(), size_of(header.kind, rows)));
  }
  const bool complete = (header.flags & kComplete) != 0;
  Columns columns(rows);
  if (header.kind == kRouting) {
    RoutingFrame frame{.subscription = header.subscription,
                       .step = StepId{header.step},
                       .first = header.first,
                       .complete = complete,
                       .layer = LayerId{header.layer},
                       .token = {},
                       .expert = {},
                       .rank = {},
                       .score = {}};
    frame.token = columns.get<std::uint32_t>(bytes);
    frame.expert = columns.get<std::uint32_t>(bytes);
    frame.rank = columns.get<std::uint32_t>(bytes);
    frame.score = columns.get<float>(bytes);
    return frame;
  }
  const auto ops = columns.get<std::uint32_t>(bytes);
  for (std::size_t i = 0; i < rows; ++i) {
    if (ops[i] != header.first + i)
      return std::unexpected(std::format("row {} of a live frame is not the next op", i));
  }
  OpsFrame frame{.subscription = header.subscription,
                 .step = StepId{header.step},
                 .first = OpId{header.first},
                 .complete = complete,
                 .withdrawn = (header.flags & kWithdrawn) != 0,
                 .begin = {},
                 .end = {}};
  frame.begin = times(columns.get<double>(bytes));
  frame.end = times(columns.get<double>(bytes));
  return frame;
}

}  // namespace tt
