#include "tracer/text_stream.h"

#include <algorithm>
#include <cstddef>

namespace tt {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
  std::size_t length = 1;
  enum { Valid, Invalid, Incomplete } state = Invalid;
};

// The character at the start of `text` (not empty); Unicode's table 3-7.
Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, Character::Valid};
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0) return {1, Character::Invalid};
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Character::Incomplete};
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (i == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return {i, Character::Invalid};
  }
  return {length, Character::Valid};
}

// Bytes at the end that may be the beginning of a stop string.
std::size_t held_for_stops(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t held = 0;
  for (const std::string& stop : stops) {
    for (std::size_t length = std::min(stop.size() - 1, text.size()); length > held; --length) {
      if (text.ends_with(std::string_view(stop).substr(0, length))) {
        held = length;
        break;
      }
    }
  }
  return held;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(end);
    return flush();
  }
  const std::size_t free = held_.size() - held_for_stops(held_, stops_);
  std::string text;
  std::size_t at = 0;
  while (at < free) {
    const Character next = character_at(std::string_view(held_).substr(at, free - at));
    if (next.state == Character::Incomplete) break;
    text += next.state == Character::Valid ? std::string_view(held_).substr(at, next.length)
                                           : kReplacement;
    at += next.length;
  }
  held_.erase(0, at);
  return text;
}

std::string TextStream::flush() {
  std::string text = to_valid_utf8(held_);
  held_.clear();
  return text;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character next = character_at(bytes);
    text += next.state == Character::Valid ? bytes.substr(0, next.length) : kReplacement;
    bytes.remove_prefix(next.length);
  }
  return text;
}

}  // namespace tt
