#include "cli/terminal/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <print>
#include <system_error>

namespace tt::cli {
namespace {

int failed = 0;  // errno of the first failure; 0: none

void check_write(bool written) {
  if (!written && failed == 0) failed = errno;
}

}  // namespace

void put(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::string escaped;
  if (terminal) text = escaped = escape_control_chars(text, "\n\t");
  check_write(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void flush_output() { check_write(std::fflush(stdout) == 0); }

bool output_ok() { return failed == 0; }

int finish_output(std::string_view command, int exit_code) {
  flush_output();
  // CLI11 writes to the same stream without checking for errors.
  if (std::ferror(stdout) != 0 && failed == 0) failed = EIO;
  if (output_ok()) return exit_code;
  if (failed != EPIPE) {
    std::println(stderr, "{}: standard output cannot be written: {}", command,
                 std::generic_category().message(failed));
  }
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace tt::cli
