// CLI11 validators for option values, with readable bounds in --help and readable error
// messages.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/request/request_bounds.h"

namespace tt {

// Numbers from `least` to `most`. The name in NumberBounds is not used.
CLI::Validator whole_number(double min, double max);
CLI::Validator whole_number(const NumberBounds& bounds);
CLI::Validator number(const NumberBounds& bounds);
CLI::Validator number_above_zero(double max);

// A size in bytes: 500MB (10^6), 500MiB or 500M (2^20), as in dd(1); up to E.
CLI::Validator size_in_bytes();

// Valid UTF-8 without other restrictions, so that it can be sent as JSON. utf8_error()
// returns the error message, empty: valid.
CLI::Validator utf8_text();
std::string utf8_error(std::string_view text);

CLI::Validator file_name();  // not empty, as a shell variable that is not set
CLI::Validator existing_folder();
CLI::Validator existing_path();  // a file or a folder

// One of a list of words, case-insensitive.
using NamedValues = std::vector<std::pair<std::string, long long>>;
CLI::Validator one_of(const std::vector<std::string>& words);
CLI::Validator named_value(const NamedValues& words);  // the value becomes the number of the word

// The choices of an option with a one_of() or named_value() validator, otherwise empty. For
// completion.
std::vector<std::string> choices_of(CLI::Option& option);

// Names of enum values, or of true and false.
template <class Choices>
CLI::Validator choice(const Choices& choices) {
  NamedValues words;
  for (const auto& [word, value] : choices) words.emplace_back(word, static_cast<long long>(value));
  std::ranges::sort(words, {}, &NamedValues::value_type::second);
  return named_value(words);
}

}  // namespace tt
