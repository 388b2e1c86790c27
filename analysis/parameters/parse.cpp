#include "analysis/parameters/parse.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <ranges>

#include "tracer/text/join.h"
#include "tracer/text/parse_number.h"

namespace tt {

std::expected<std::uint64_t, std::string> parse_whole(std::string_view text, std::uint64_t min,
                                                      std::uint64_t max) {
  const auto value = parse_number<std::uint64_t>(text);
  if (value && *value >= min && *value <= max) return *value;
  return std::unexpected(std::format("must be a whole number from {} to {}.", min, max));
}

std::expected<double, std::string> parse_percent(std::string_view text) {
  const auto value = parse_number<double>(text, std::chars_format::fixed);
  if (value && *value >= 0 && *value <= 100) return *value;
  return std::unexpected("must be a number from 0 to 100.");
}

std::expected<bool, std::string> parse_flag(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  return std::unexpected("must be one of true, false.");
}

std::expected<std::vector<std::uint64_t>, std::string> parse_wholes(std::string_view text,
                                                                    std::uint64_t max,
                                                                    std::size_t count) {
  std::vector<std::uint64_t> numbers;
  for (const auto word : std::views::split(text, ',')) {
    const auto value = parse_number<std::uint64_t>(std::string_view(word));
    if (!value || *value > max || numbers.size() == count) {
      return std::unexpected(std::format(
          "must be at most {} comma-separated whole numbers from 0 to {}.", count, max));
    }
    numbers.push_back(*value);
  }
  return numbers;
}

std::expected<std::string, std::string> parse_text(std::string text, std::size_t max) {
  // Code points of UTF-8: all bytes except continuation bytes.
  const auto characters = static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
  if (characters <= max) return text;
  return std::unexpected(std::format("must have at most {} characters.", max));
}

std::expected<std::size_t, std::string> parse_word(std::string_view text,
                                                   const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  return std::unexpected(std::format("must be one of {}.", join(words)));
}

std::expected<LayerId, std::string> parse_layer_number(std::string_view text) {
  if (const auto layer = parse_layer(text)) return *layer;
  return std::unexpected("must be a layer number from 0, or outside (or none).");
}

std::expected<LayerSet, std::string> parse_layer_list(std::string_view text) {
  return parse_text(std::string(text), kMaxTextLength).and_then([](const std::string& checked) {
    return parse_layers(checked).transform_error([](const std::string& why) { return ": " + why; });
  });
}

}  // namespace tt
