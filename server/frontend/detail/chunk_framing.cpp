#include "server/frontend/detail/chunk_framing.h"

#include <algorithm>
#include <limits>

namespace tt::frontend {
namespace {

constexpr std::string_view kBadSize =
    "the size of a chunk must be 1 to 16 hexadecimal digits, followed by CRLF or by ';' and an "
    "extension of at most 256 bytes";
constexpr std::string_view kBadEnd = "the data of a chunk must be followed by CRLF";
constexpr std::string_view kBadTrailer =
    "the trailer of a chunked body must be at most 8192 bytes of lines that end in CRLF";

// -1: not a hexadecimal digit.
int digit_of(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int letter = c | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

std::string_view ChunkFraming::take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (state_ == State::Data) {
      const std::uint64_t count = std::min<std::uint64_t>(left_, bytes.size());
      left_ -= count;
      bytes.remove_prefix(count);
      if (left_ == 0) state_ = State::DataReturn;
      continue;
    }
    const std::string_view wrong = take_one(static_cast<unsigned char>(bytes.front()));
    if (!wrong.empty()) return wrong;
    bytes.remove_prefix(1);
  }
  return {};
}

std::string_view ChunkFraming::take_one(unsigned char c) {
  switch (state_) {
    case State::Size:
      if (const int digit = digit_of(c); digit >= 0) {
        if (++digits_ > kMaxSizeDigits) return kBadSize;
        size_ = size_ << 4 | static_cast<std::uint64_t>(digit);
      } else if (digits_ == 0) {
        return kBadSize;
      } else if (c == '\r') {
        state_ = State::SizeLineFeed;
      } else if (c == ';') {
        state_ = State::Extension;
      } else {
        return kBadSize;
      }
      return {};
    case State::Extension:
      if (c == '\r') {
        state_ = State::SizeLineFeed;
      } else if (is_control(c) || ++ignored_ > kMaxExtensionBytes) {
        return kBadSize;
      }
      return {};
    case State::SizeLineFeed:
      return c == '\n' ? end_size_line() : kBadSize;
    case State::DataReturn:
      state_ = State::DataLineFeed;
      return c == '\r' ? std::string_view() : kBadEnd;
    case State::DataLineFeed:
      state_ = State::Size;
      return c == '\n' ? std::string_view() : kBadEnd;
    case State::TrailerLine:
      if (++ignored_ > kMaxTrailerBytes) return kBadTrailer;
      if (c == '\r') {
        state_ = State::TrailerLineFeed;
      } else if (is_control(c)) {
        return kBadTrailer;
      } else {
        ++line_;
      }
      return {};
    case State::TrailerLineFeed:
      state_ = line_ == 0 ? State::End : State::TrailerLine;
      line_ = 0;
      return c == '\n' ? std::string_view() : kBadTrailer;
    case State::Data:  // in take()
    case State::End:   // the reader stops there
      break;
  }
  return kBadTrailer;
}

std::string_view ChunkFraming::end_size_line() {
  if (size_ > std::numeric_limits<std::uint64_t>::max() - data_bytes_) return kBadSize;
  data_bytes_ += size_;
  left_ = size_;
  state_ = size_ == 0 ? State::TrailerLine : State::Data;
  size_ = 0;
  digits_ = ignored_ = 0;
  return {};
}

}  // namespace tt::frontend
