// Progress, warnings, cancellation and exit code of a running command. After one second it
// shows a status line on stderr, if that is a terminal: the current operation, its progress if
// known, and the elapsed time. The line is cleared before any other output. The first SIGINT
// or SIGTERM cancels the operation, the second one ends the process. At most one instance at
// a time; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/page.h"
#include "analysis/common/valid_prefix.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/status_line.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/trace_error.h"

namespace tt::cli {

// Whether to show the status line. Yes: only on a terminal.
enum class ProgressVisibility : bool { No, Yes };
// No if the output is JSON and stdout is not a terminal, because a program reads it.
ProgressVisibility progress_visibility(bool json);

class Progress {
 public:
  // For `tt VERB`. Create it before the first file is opened.
  Progress(std::string_view verb, ProgressVisibility shown);

  // Starts an operation and returns its continue check. How often the operation calls it is
  // defined in analysis/common/page.h and does not indicate progress.
  ContinueCheck start(std::string what);
  // For an operation that calls the check exactly once before each step. `steps`: their number,
  // 0: unknown.
  ContinueCheck start_steps(std::string what, std::uint64_t steps = 0);
  ContinueCheck start_steps(std::string what, const SessionReader& reader);  // all steps

  // For an operation that reports how many of its bytes are done.
  std::function<bool(std::uint64_t done, std::uint64_t total)> start_bytes(const std::string& what);

  // Runs `question` on the session. If the file is damaged, runs it on the steps before the
  // damage and prints a warning.
  template <class Question>
  auto query_valid_prefix(SessionReader& reader, const Question& question) {
    auto found = tt::query_valid_prefix(reader, question, start("reading"));
    if (found) warn_of_damage(reader.readable_steps());
    return found;
  }
  // Warns that the result covers only the first `readable_steps` steps. nullopt: no damage, no
  // warning.
  void warn_of_damage(std::optional<std::uint32_t> readable_steps);

  // Clears the status line for good. Call it before printing the result.
  void end();
  // Prints a warning on stderr that the result is incomplete; the exit code becomes 1.
  void warn(const std::string& message);
  // Prints the reason for an empty result on stderr.
  void note(const std::string& reason);
  // If the session was recorded without accesses, notes that and returns true.
  bool note_missing_accesses(const SessionReader& reader, std::string_view which = "the session");
  // Exit code of a successful command: 0, or 1 after a warning.
  int exit_code() const { return warned_ ? 1 : 0; }
  // Calls end(), prints the error on stderr and returns exit code 1. After an interrupt prints
  // nothing and returns 130, because a signal also makes opening and reading fail (EINTR).
  int failed(const TraceError& error);
  int failed(const std::string& message);

 private:
  using Clock = std::chrono::steady_clock;
  void begin(std::string what, std::uint64_t steps, bool counted);
  bool update();

  const InterruptGuard guard_;
  std::string verb_;
  StatusLine line_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point next_ = started_ + std::chrono::seconds(1);
  std::string what_;
  std::uint64_t calls_ = 0, steps_ = 0;
  bool counted_ = false, ended_ = false, warned_ = false;
};

}  // namespace tt::cli
