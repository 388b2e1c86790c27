// What a command answers, on standard output. What cannot be written (a full disk, a
// reader that has gone) is kept in mind and told once, when the command has ended: as
// the stream itself, this is one of a process. One thread.
#pragma once

#include <format>
#include <string_view>
#include <utility>

namespace tt::cli {

void put(std::string_view text);
// Past the buffer, to whoever waits for it.
void flush_output();
// False: something was not; who has more to say may stop.
bool output_taken();

template <class... Args>
void say(std::format_string<Args...> format, Args&&... args) {
  put(std::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void say_line(std::format_string<Args...> format, Args&&... args) {
  put(std::format(format, std::forward<Args>(args)...) + '\n');
}

// Of a program that has answered and would end with `exit_code`: writes what is left.
// Where something could not be written, says so on stderr, naming `command` ("tt hot"),
// and 1; quietly where the reader has gone (`| head`).
int end_of_output(std::string_view command, int exit_code);

}  // namespace tt::cli
