#include "api/exchange/picture/image.h"

#include <png.h>

#include <algorithm>
#include <cctype>

namespace tt::exchange {
namespace {

// Glyphs of 3 x 5 dots: five rows from the top, one octal digit each; 4 is the left dot.
constexpr unsigned kDigits[] = {075557, 026227, 071747, 071717, 055711,
                                074717, 074757, 071111, 075757, 075717};
constexpr unsigned kLetters[] = {025755, 065656, 034443, 065556, 074647, 074644, 034553,
                                 055755, 072227, 011152, 055655, 044447, 057755, 065555,
                                 025552, 065644, 025563, 065655, 034216, 072222, 055557,
                                 055552, 055775, 055255, 055222, 071247};
constexpr std::uint32_t kDot = 2;  // pixels
constexpr int kColumns = 3, kRows = 5;

unsigned shape_of(char c) {
  const auto letter = static_cast<unsigned char>(c);
  if (std::isdigit(letter)) return kDigits[letter - '0'];
  if (std::isalpha(letter)) return kLetters[std::toupper(letter) - 'A'];
  switch (c) {
    case '.':
      return 000002;
    case ',':
      return 000024;
    case ':':
      return 002020;
    case '/':
      return 011244;
    case '%':
      return 051245;
    case '+':
      return 002720;
    case '-':
      return 000700;
    default:
      return 0;
  }
}

}  // namespace

void Image::fill(const Box& box, Colour colour) {
  const std::uint32_t right = std::min(width_, box.x + box.width),
                      bottom = std::min(height_, box.y + box.height);
  for (std::uint32_t y = box.y; y < bottom; ++y)
    for (std::uint32_t x = box.x; x < right; ++x) pixels_[std::size_t{y} * width_ + x] = colour;
}

void Image::write(std::uint32_t x, std::uint32_t y, std::string_view words) {
  for (const char c : words) {
    const unsigned shape = shape_of(c);
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const int bit = kColumns * kRows - 1 - (row * kColumns + column);
        if ((shape >> bit & 1) == 0) continue;
        fill({.x = x + static_cast<std::uint32_t>(column) * kDot,
              .y = y + static_cast<std::uint32_t>(row) * kDot,
              .width = kDot,
              .height = kDot},
             kInk);
      }
    }
    x += kLetterWidth;
  }
}

std::expected<std::string, TraceError> Image::png() const {
  static_assert(sizeof(Colour) == 3);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width_;
  image.height = height_;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  if (png_image_write_to_memory(&image, file.data(), &size, 0, pixels_.data(), 0, nullptr) == 0)
    return std::unexpected(TraceError{TraceError::Kind::Io, std::string("PNG: ") + image.message});
  file.resize(size);
  return file;
}

}  // namespace tt::exchange
