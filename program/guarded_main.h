// The last catch of a program: an exception that reaches main() ends it with a message and exit
// code 1, not as an abort.
#pragma once

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace tt {

// The text without control characters, which a terminal would obey.
inline std::string printable(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text;
}

// Runs `body`, a function without arguments that returns the exit code. Allocates nothing after
// std::bad_alloc.
template <class Body>
int guarded_main(const char* program, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: there is not enough memory\n", program);
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "%s: %s: %s\n", program, printable(error.path1().string()).c_str(),
                 error.code().message().c_str());
  } catch (const std::system_error& error) {
    // Of std::thread, if no more threads can be started.
    std::fprintf(stderr, "%s: the system refused a request: %s\n", program,
                 printable(error.what()).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: unexpected error: %s\n", program, printable(error.what()).c_str());
  } catch (...) {
    std::fprintf(stderr, "%s: unexpected error\n", program);
  }
  return 1;
}

}  // namespace tt
