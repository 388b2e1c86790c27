// A command at work. On a terminal, once it has taken a second, a line on stderr says
// what is being done, how far it is where that is known, and for how long; the line is
// gone before anything else is said. The first SIGINT or SIGTERM asks the work to end,
// the second ends the process. One at a time in a program, one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/page.h"
#include "analysis/common/up_to_damage.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/status_line.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/trace_error.h"

namespace tt::cli {

// Yes: on a terminal alone.
enum class Shown : bool { No, Yes };
// Not where a program asks: --json, and not to a terminal.
Shown shown_beside(bool json);

class Progress {
 public:
  // Of `tt VERB`. Begin before the first file is opened.
  Progress(std::string_view verb, Shown shown);

  // What work asks whether it may go on, while this does the work. It is called so often
  // as its contract says (analysis/common/page.h), which is no measure of how far it is.
  KeepGoing during(std::string what);
  // Of work that asks exactly once before every step; 0: nobody knows how many there are.
  KeepGoing during_steps(std::string what, std::uint64_t steps = 0);
  KeepGoing during_steps(std::string what, const SessionReader& reader);  // all there are

  // Asks `question` of the session, of the steps before its damage where its file is
  // damaged; then warns.
  template <class Question>
  auto ask_up_to_damage(SessionReader& reader, const Question& question) {
    auto found = tt::ask_up_to_damage(reader, question, during("reading"));
    if (found) warn_of_damage(reader.whole_steps());
    return found;
  }
  // Where the session is about so many steps before its damage; none: all is whole.
  void warn_of_damage(std::optional<std::uint32_t> whole_steps);

  // Nothing is shown any more: before the answer is printed.
  void end();
  // Says on stderr that the answer is not all that was asked for.
  void warn(const std::string& message);
  // Says there why the answer is empty, where the session was recorded without accesses.
  void tell_no_accesses(const SessionReader& reader);
  // Of a command that has answered: 0, after a warning 1.
  int exit_code() const { return warned_ ? 1 : 0; }
  // Ends, says why on stderr and returns the exit code: 1. Or 130, and nothing is said,
  // where the user has ended the work: then opening and reading fail, too (EINTR).
  int failed(const TraceError& error);
  int failed(const std::string& message);

 private:
  using Clock = std::chrono::steady_clock;
  void begin(std::string what, std::uint64_t steps, bool counted);
  bool ask();

  const InterruptGuard guard_;
  std::string verb_;
  StatusLine line_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point next_ = begun_ + std::chrono::seconds(1);
  std::string what_;
  std::uint64_t asked_ = 0, steps_ = 0;
  bool counted_ = false, ended_ = false, warned_ = false;
};

}  // namespace tt::cli
