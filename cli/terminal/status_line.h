// A status line on stderr that each update overwrites.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <print>
#include <string>

namespace tt::cli {

class StatusLine {
 public:
  // Shows nothing if stderr is not a terminal.
  explicit StatusLine(bool shown) : shown_(shown && isatty(STDERR_FILENO) != 0) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void show(const std::string& text) {
    if (shown_ && text != last_) std::print(stderr, "\r\033[K{}", text);
    last_ = text;
  }
  void clear() {
    if (shown_ && !last_.empty()) std::print(stderr, "\r\033[K");
    last_.clear();
  }

 private:
  bool shown_;
  std::string last_;
};

}  // namespace tt::cli
