// What the server tells the people who run it: one line per event on stderr, as
// text or as JSON, each with fields that a machine can look for.
//
//   const Log log({.level = LogLevel::Info, .json = false});
//   log.info("the session has ended", {{"session", id}, {"ms", 12}});
//   const Log library = log.of("llama.cpp");  // its lines say so: component=llama.cpp
//
//   2026-11-21T03:29:26.123+01:00 info the session has ended session=... ms=12
//   {"time":"2026-11-21T02:29:26.123456Z","level":"info","message":"...","session":"...","ms":12}
//
// A value: copies write to the same place. Any thread, also one that must not
// wait: a line is queued, and a thread of the log's own writes it. When nobody
// reads stderr the oldest lines make room and are counted. The last copy's end
// waits until all is written. Make it after StopSignals: it starts a thread.
//
// Whatever stands in a text, one call is one line: control characters are
// escaped, in JSON invalid UTF-8 is replaced. Secrets, prompts and answers are
// never given to it.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace tt {

enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warning, Error };

struct LogOptions {
  LogLevel level = LogLevel::Info;  // the least that is written
  bool json = false;
};

// Borrows texts for the length of the call. Named by a word that is not time, level, message or
// component.
struct LogField {
  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  LogField(std::string_view field, std::integral auto number)
      : name(field), value(static_cast<std::int64_t>(number)) {}
  LogField(std::string_view field, std::floating_point auto number)
      : name(field), value(static_cast<double>(number)) {}

  std::string_view name;
  std::variant<std::string_view, std::int64_t, double> value;
};
using LogFields = std::initializer_list<LogField>;

class Log {
 public:
  explicit Log(LogOptions options);
  Log of(std::string_view component) const;

  bool writes(LogLevel level) const;
  void write(LogLevel level, std::string_view message, LogFields fields = {}) const;
  void debug(std::string_view message, LogFields fields = {}) const {
    write(LogLevel::Debug, message, fields);
  }
  void info(std::string_view message, LogFields fields = {}) const {
    write(LogLevel::Info, message, fields);
  }
  void warn(std::string_view message, LogFields fields = {}) const {
    write(LogLevel::Warning, message, fields);
  }
  void error(std::string_view message, LogFields fields = {}) const {
    write(LogLevel::Error, message, fields);
  }

  std::uint64_t lines_lost() const;

 private:
  struct Lines;
  std::shared_ptr<const Lines> lines_;
  std::string component_;
};

}  // namespace tt
