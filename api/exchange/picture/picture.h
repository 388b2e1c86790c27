// A small picture: boxes of one colour, and words; and as PNG.
#pragma once

#include <cstdint>
#include <expected>
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

// White at first. What lies beyond its edges is not painted.
class Picture {
 public:
  Picture(std::uint32_t width, std::uint32_t height)
      : width_(width), height_(height), pixels_(std::size_t{width} * height, kWhite) {}

  static constexpr Colour kWhite{255, 255, 255}, kInk{60, 60, 60};
  // Of a word's box: kLetterWidth each, the last one's gap included.
  static constexpr std::uint32_t kLetterWidth = 8, kLetterHeight = 10;

  void fill(const Box& box, Colour colour);
  // Upper left corner. Letters of any case, digits and . , : / % + -; else a gap.
  void write(std::uint32_t x, std::uint32_t y, std::string_view words);

  // RGB, 8 bits each. Io: libpng has no memory.
  std::expected<std::string, TraceError> png() const;

 private:
  std::uint32_t width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace tt::exchange
