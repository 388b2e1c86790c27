// Parse the text of one parameter. An error is a predicate that follows the name of the parameter:
// "must be a whole number from 0 to 3."
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/layer_set.h"

namespace tt {

inline constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::uint32_t>::max();
// Largest integer that JSON numbers represent exactly.
inline constexpr std::uint64_t kMaxJsonInteger = (std::uint64_t{1} << 53) - 1;
// Rows of a page.
inline constexpr std::uint64_t kDefaultRows = 1000;
inline constexpr std::uint64_t kMaxRows = 10'000;
inline constexpr std::size_t kMaxTextLength = 200;  // characters

std::expected<std::uint64_t, std::string> parse_whole(std::string_view text, std::uint64_t min,
                                                      std::uint64_t max);
std::expected<double, std::string> parse_percent(std::string_view text);  // 0 to 100
std::expected<bool, std::string> parse_flag(std::string_view text);       // "true" or "false"
// At most `count` comma-separated numbers from 0 to `max`.
std::expected<std::vector<std::uint64_t>, std::string> parse_wholes(std::string_view text,
                                                                    std::uint64_t max,
                                                                    std::size_t count);
// At most `max` characters.
std::expected<std::string, std::string> parse_text(std::string text, std::size_t max);
// The index of the word.
std::expected<std::size_t, std::string> parse_word(std::string_view text,
                                                   const std::vector<std::string>& words);
// A layer number, or "outside" ("none") for kNoLayer.
std::expected<LayerId, std::string> parse_layer_number(std::string_view text);
// In the syntax of parse_layers(). The error begins with ": ".
std::expected<LayerSet, std::string> parse_layer_list(std::string_view text);

}  // namespace tt
