#include "cli/terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <format>
#include <utility>

#include "analysis/common/format_units.h"
#include "cli/terminal/standard_output.h"

namespace tt::cli {

ProgressVisibility progress_visibility(bool json) {
  return json && isatty(STDOUT_FILENO) == 0 ? ProgressVisibility::No : ProgressVisibility::Yes;
}

Progress::Progress(std::string_view verb, ProgressVisibility shown)
    : verb_(verb), line_(shown == ProgressVisibility::Yes) {}

ContinueCheck Progress::start(std::string what) {
  begin(std::move(what), 0, false);
  return [this] { return update(); };
}

ContinueCheck Progress::start_steps(std::string what, std::uint64_t steps) {
  begin(std::move(what), steps, true);
  return [this] { return update(); };
}

ContinueCheck Progress::start_steps(std::string what, const SessionReader& reader) {
  return start_steps(std::move(what), reader.step_count().value_or(0));
}

std::function<bool(std::uint64_t, std::uint64_t)> Progress::start_bytes(const std::string& what) {
  begin(what, 0, false);
  return [this, what](std::uint64_t done, std::uint64_t total) {
    what_ = std::format("{}, {} % of {}", what, total == 0 ? 100 : done * 100 / total,
                        format_bytes(total));
    return update();
  };
}

void Progress::begin(std::string what, std::uint64_t steps, bool counted) {
  what_ = std::move(what);
  calls_ = 0;
  steps_ = steps;
  counted_ = counted;
}

// Updates the status line at most ten times a second.
bool Progress::update() {
  ++calls_;
  if (const auto now = Clock::now(); !ended_ && now >= next_) {
    next_ = now + std::chrono::milliseconds(100);
    std::string text = what_;
    if (counted_ && steps_ > 0) {
      text += std::format(", step {} of {}", std::min(calls_, steps_), steps_);
    } else if (counted_) {
      text += std::format(", step {}", calls_);
    }
    const auto taken = std::chrono::duration_cast<std::chrono::seconds>(now - started_);
    line_.show(std::format("{}, {} s", text, taken.count()));
  }
  return !was_interrupted();
}

void Progress::end() {
  line_.clear();
  ended_ = true;
}

void Progress::warn_of_damage(std::optional<std::uint32_t> readable_steps) {
  if (!readable_steps) return;
  warn(std::format(
      "the file is damaged: the result covers only the first {} steps (run tt parse --validate "
      "for details)",
      *readable_steps));
}

void Progress::warn(const std::string& message) {
  line_.clear();
  print_message("tt {}: {}", verb_, message);
  warned_ = true;
}

void Progress::note(const std::string& reason) {
  line_.clear();
  print_message("tt {}: {}", verb_, reason);
}

bool Progress::note_missing_accesses(const SessionReader& reader, std::string_view which) {
  const auto info = reader.info();
  if (!info || info->level != Level::Minimal) return false;
  note(std::format(
      "{} was recorded at level minimal, which stores steps and tokens but no accesses. Record it "
      "again with --level detailed.",
      which));
  return true;
}

int Progress::failed(const TraceError& error) { return failed(error.message); }

int Progress::failed(const std::string& message) {
  end();
  if (was_interrupted()) return 130;
  print_message("tt {}: {}", verb_, message);
  return 1;
}

}  // namespace tt::cli
