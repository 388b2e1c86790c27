// Log of the server: one line per event on stderr, as text or JSON, with structured fields.
//
//   const Log log({.level = LogLevel::Info, .json = false});
//   log.info("the session has ended", {{"session", id}, {"ms", 12}});
//   const Log library = log.of("llama.cpp");  // adds component=llama.cpp to each line
//
//   2026-11-21T03:29:26.123+01:00 info the session has ended session=... ms=12
//   {"time":"2026-11-21T02:29:26.123456Z","level":"info","message":"...","session":"...","ms":12}
//
// A value type: copies write to the same log. Any thread, including threads that must not
// block: a line is queued, and a background thread writes it. When stderr is not read and the
// queue is full, the oldest lines are dropped and counted. The destructor of the last copy
// waits until all lines are written. Create it after StopSignals, because it starts a thread.
//
// Each call writes exactly one line: control characters are escaped, and in JSON invalid UTF-8
// is replaced. Never log secrets, prompts or responses.
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
  LogLevel level = LogLevel::Info;  // minimum level
  bool json = false;
};

// A named value. Text is borrowed for the duration of the call. The name must not be time,
// level, message or component.
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
