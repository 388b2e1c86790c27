// A small image with filled boxes and text; PNG output.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/trace_error.h"

namespace tt::exchange {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

struct Box {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;  // y downwards
};

// Initially white. Drawing outside of the edges is clipped.
class Image {
 public:
  Image(std::uint32_t width, std::uint32_t height)
      : width_(width), height_(height), pixels_(std::size_t{width} * height, kWhite) {}

  static constexpr Colour kWhite{255, 255, 255}, kInk{60, 60, 60};
  // Text size: kLetterWidth per character, including the gap.
  static constexpr std::uint32_t kLetterWidth = 8, kLetterHeight = 10;

  void fill(const Box& box, Colour colour);
  // Draws text; x and y are the upper left corner. Supports letters (case-insensitive), digits
  // and . , : / % + -; other characters are blank.
  void write(std::uint32_t x, std::uint32_t y, std::string_view words);

  // By row, from the top.
  std::span<const Colour> pixels() const { return pixels_; }

  // RGB, 8 bits per channel. Returns Io if libpng runs out of memory.
  std::expected<std::string, TraceError> png() const;

 private:
  std::uint32_t width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace tt::exchange
