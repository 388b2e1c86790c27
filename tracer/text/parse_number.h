// Numbers in texts, without a locale.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace tt {

// nullopt: the text is not a number as a whole, or the number does not fit. Without spaces and "+";
// unsigned numbers also without "-".
template <std::integral Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}
template <std::floating_point Number>
std::optional<Number> parse_number(std::string_view text,
                                   std::chars_format form = std::chars_format::general) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, form);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

}  // namespace tt
