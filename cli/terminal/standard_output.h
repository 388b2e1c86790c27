// Writes a command's result to standard output. The first write error (full disk, closed
// pipe) is stored and reported once, at the end of the command. The state is per process,
// like the stream. One thread.
#pragma once

#include <format>
#include <string_view>
#include <utility>

namespace tt::cli {

void put(std::string_view text);
// Flushes the stream buffer.
void flush_output();
// False after a write error; the caller can stop writing.
bool output_ok();

template <class... Args>
void print_text(std::format_string<Args...> format, Args&&... args) {
  put(std::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void print_line(std::format_string<Args...> format, Args&&... args) {
  put(std::format(format, std::forward<Args>(args)...) + '\n');
}

// Flushes the output at the end of the program and returns the exit code: `exit_code`, or 1
// instead of 0 after a write error. Reports the error on stderr with `command` ("tt hot"),
// except for a closed pipe (`| head`).
int finish_output(std::string_view command, int exit_code);

}  // namespace tt::cli
