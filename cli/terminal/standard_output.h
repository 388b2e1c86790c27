// Writes a command's result to standard output, and messages to stderr. The first write error (full
// disk, closed pipe) is stored and reported once, at the end of the command. The state is per
// process, like the stream. One thread.
//
// Names and texts come from files, and a terminal obeys control characters. So they are escaped
// here: in the arguments of the functions with a format always, in put() if a terminal reads it (a
// file or another program gets the exact bytes of JSON, CSV or a log).
#pragma once

#include <cstdio>
#include <format>
#include <print>
#include <string>
#include <string_view>
#include <type_traits>

#include "api/text/escape_control_chars.h"

namespace tt::cli {

// Of a result that a program may read.
void put(std::string_view text);
inline void put_line(std::string text) { put(text += '\n'); }
// Flushes the stream buffer.
void flush_output();
// False after a write error; the caller can stop writing.
bool output_ok();

// A text, with control characters except line breaks and tabs escaped; another value unchanged.
template <class Value>
decltype(auto) shown(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    return escape_control_chars(value, "\n\t");
  } else {
    return value;
  }
}
template <class... Args>
std::string shown_text(std::format_string<Args...> format, const Args&... args) {
  return [&](const auto&... each) {
    return std::vformat(format.get(), std::make_format_args(each...));
  }(shown(args)...);
}

template <class... Args>
void print_text(std::format_string<const Args&...> format, const Args&... args) {
  put(shown_text<const Args&...>(format, args...));
}
template <class... Args>
void print_line(std::format_string<const Args&...> format, const Args&... args) {
  put_line(shown_text<const Args&...>(format, args...));
}
// A line on stderr.
template <class... Args>
void print_message(std::format_string<const Args&...> format, const Args&... args) {
  std::println(stderr, "{}", shown_text<const Args&...>(format, args...));
}

// Flushes the output at the end of the program and returns the exit code: `exit_code`, or 1
// instead of 0 after a write error. Reports the error on stderr with `command` ("tt hot"),
// except for a closed pipe (`| head`).
int finish_output(std::string_view command, int exit_code);

}  // namespace tt::cli
