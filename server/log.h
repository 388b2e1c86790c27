// What the server tells the person who started it: lines on stderr.
#pragma once

#include <cstdio>
#include <format>
#include <string>
#include <string_view>

namespace tt {

class Log {
 public:
  explicit Log(bool verbose) : verbose_(verbose) {}
  void info(std::string_view text) const { line("", text); }
  void warn(std::string_view text) const { line("warning: ", text); }
  void error(std::string_view text) const { line("error: ", text); }
  void detail(std::string_view text) const {  // with --verbose
    if (verbose_) line("", text);
  }

 private:
  // One write per line: threads do not mix theirs.
  static void line(std::string_view kind, std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    if (text.empty()) return;
    const std::string out = std::format("tt-server: {}{}\n", kind, text);
    std::fwrite(out.data(), 1, out.size(), stderr);
  }

  bool verbose_;
};

}  // namespace tt
