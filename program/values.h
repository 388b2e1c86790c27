// What values of options may be, said as a person would: bounds in --help, and
// why one is refused.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/request/request_bounds.h"

namespace tt {

// Numbers from `least` to `most`, whose names are not looked at.
CLI::Validator whole_number(double least, double most);
CLI::Validator whole_number(const NumberBounds& bounds);
CLI::Validator number(const NumberBounds& bounds);
CLI::Validator number_above_zero(double most);

// Bytes, as 500M or 20G; units are powers of 1024, or of 1000 but for KiB...
enum class Units { Of1024, Of1000 };
CLI::Validator size_in_bytes(Units units);

// Text that can be shown and sent as JSON. `text_complaint`: none.
CLI::Validator utf8_text();
std::string text_complaint(std::string_view text);

CLI::Validator existing_folder();
CLI::Validator existing_path();  // a file, or a folder

// One of some words, whatever their case.
using Words = std::vector<std::pair<std::string, long long>>;
CLI::Validator one_of(const std::vector<std::string>& words);
CLI::Validator numbered_word(const Words& words);  // becomes its number

// What an option takes, where that is one of some words; else none. For completion.
std::vector<std::string> words_of(CLI::Option& option);

// One of some words that stand for values of an enum, or for true and false.
template <class Choices>
CLI::Validator choice(const Choices& choices) {
  Words words;
  for (const auto& [word, value] : choices) words.emplace_back(word, static_cast<long long>(value));
  std::ranges::sort(words, {}, &Words::value_type::second);
  return numbered_word(words);
}

}  // namespace tt
