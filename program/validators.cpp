#include "program/validators.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <format>
#include <iterator>
#include <optional>
#include <ranges>
#include <sstream>
#include <system_error>

#include "tracer/text/join.h"
#include "tracer/text/nearest.h"
#include "tracer/text/utf8.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

// Formats 100000 as 100000, not 1e+05.
std::string number_text(double value) {
  return value == std::trunc(value) ? std::format("{:.0f}", value) : std::format("{}", value);
}

template <class Number>
CLI::Validator bounded(double min, double max, const char* kind) {
  const std::string requirement =
      std::format("must be {} from {} to {}", kind, number_text(min), number_text(max));
  return CLI::Validator(
      [=](const std::string& text) {
        Number value{};
        const bool valid = CLI::detail::lexical_cast(text, value) &&
                           static_cast<double>(value) >= min && static_cast<double>(value) <= max;
        return valid ? "" : std::format("{}, not '{}'", requirement, text);
      },
      max < kMaxInt32 ? std::format("{}..{}", number_text(min), number_text(max))
                      : std::format("from {}", number_text(min)));
}

const std::pair<std::string, long long>* find(const NamedValues& words, const std::string& text) {
  for (const auto& word : words)
    if (CLI::detail::to_lower(word.first) == CLI::detail::to_lower(text)) return &word;
  return nullptr;
}

// nullopt: not a size, or more than 2^64 - 1 bytes.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc()) return std::nullopt;
  std::string unit = CLI::detail::trim_copy(std::string(end, text.data() + text.size()));
  unit = CLI::detail::to_lower(unit);
  constexpr std::string_view kPrefixes = "kmgtpe";
  const std::size_t power = unit.empty() ? kPrefixes.npos : kPrefixes.find(unit[0]);
  if (power == kPrefixes.npos)
    return unit.empty() || unit == "b" ? std::optional(size) : std::nullopt;
  unit.erase(0, 1);
  if (!unit.empty() && unit != "b" && unit != "ib") return std::nullopt;
  const std::uint64_t factor = unit == "b" ? 1000 : 1024;
  for (std::size_t i = 0; i <= power; ++i)
    if (__builtin_mul_overflow(size, factor, &size)) return std::nullopt;
  return size;
}

std::string choice_error(const NamedValues& words, const std::string& text) {
  return std::format("must be one of {}, not '{}'{}", join(words | std::views::keys), text,
                     did_you_mean(text, words | std::views::keys));
}

}  // namespace

CLI::Validator whole_number(double min, double max) {
  return bounded<std::int64_t>(min, max, "a whole number");
}
CLI::Validator whole_number(const NumberBounds& bounds) {
  return whole_number(bounds.min, bounds.max);
}
CLI::Validator number(const NumberBounds& bounds) {
  return bounded<double>(bounds.min, bounds.max, "a number");
}

CLI::Validator number_above_zero(double max) {
  return CLI::Validator(
      [max](const std::string& text) {
        double value = 0;
        const bool valid = CLI::detail::lexical_cast(text, value) && value > 0 && value <= max;
        return valid ? ""
                     : std::format("must be a number above 0 and at most {}, not '{}'",
                                   number_text(max), text);
      },
      "above 0");
}

CLI::Validator size_in_bytes() {
  return CLI::Validator(
      [](std::string& text) {
        const auto bytes = parse_size(text);
        if (!bytes) return std::format("must be a size like 500MB or 20GiB, not '{}'", text);
        text = std::to_string(*bytes);
        return std::string();
      },
      "");
}

std::string utf8_error(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_character_at(text.substr(at));
    if (character.state != Utf8Character::Valid) {
      return std::format("is not valid UTF-8: invalid byte 0x{:02x} at offset {}",
                         static_cast<unsigned char>(text[at]), at);
    }
    at += character.length;
  }
  return {};
}

CLI::Validator utf8_text() {
  return CLI::Validator([](const std::string& text) { return utf8_error(text); }, "");
}

CLI::Validator file_name() {
  return CLI::Validator(
      [](const std::string& path) {
        return path.empty() ? "must be the name of a file, not an empty text" : "";
      },
      "");
}

CLI::Validator existing_folder() {
  return CLI::Validator(
      [](const std::string& path) {
        std::error_code none;
        const bool valid = fs::is_directory(path, none);
        return valid ? "" : std::format("must be an existing folder, not '{}'", path);
      },
      "");
}

CLI::Validator existing_path() {
  return CLI::Validator(
      [](const std::string& path) {
        std::error_code none;
        return fs::exists(path, none) ? "" : std::format("'{}' does not exist", path);
      },
      "");
}

namespace {

// The name of a choice validator is this prefix and its choices, for choices_of().
constexpr std::string_view kChoicesPrefix = "one of ";

std::string name_of(const NamedValues& words) {
  std::string name(kChoicesPrefix);
  for (const auto& [word, number] : words) name += word + " ";
  return name;
}

}  // namespace

std::vector<std::string> choices_of(CLI::Option& option) {
  try {
    const std::string name = option.get_validator(0)->get_name();
    if (!name.starts_with(kChoicesPrefix)) return {};
    std::istringstream list(name.substr(kChoicesPrefix.size()));
    return {std::istream_iterator<std::string>(list), {}};
  } catch (const CLI::OptionNotFound&) {  // any value is allowed
    return {};
  }
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  NamedValues numbered;
  for (const std::string& word : words) numbered.emplace_back(word, 0);
  return CLI::Validator(
      [numbered](std::string& text) {
        const auto* word = find(numbered, text);
        if (word == nullptr) return choice_error(numbered, text);
        text = word->first;
        return std::string();
      },
      "", name_of(numbered));
}

CLI::Validator named_value(const NamedValues& words) {
  return CLI::Validator(
      [words](std::string& text) {
        const auto* word = find(words, text);
        if (word == nullptr) return choice_error(words, text);
        text = std::to_string(word->second);
        return std::string();
      },
      "", name_of(words));
}

}  // namespace tt
