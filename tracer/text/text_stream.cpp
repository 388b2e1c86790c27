#include "tracer/text/text_stream.h"

#include <algorithm>
#include <cstddef>

#include "tracer/text/utf8.h"

namespace tt {

namespace {

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
    const Utf8Character next = utf8_character_at(std::string_view(held_).substr(at, free - at));
    if (next.state == Utf8Character::Incomplete) break;
    text += next.state == Utf8Character::Valid ? std::string_view(held_).substr(at, next.length)
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

}  // namespace tt
