// The commands of tt debug (docs/debug.md): parses each, runs it and prints the result. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <format>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/run_events.h"
#include "tracer/debug/debugger.h"
#include "tracer/engine/generation_queue.h"

namespace tt::cli {

// Executes commands, one after another, until the input or the session ends.
class DebugConsole {
 public:
  // Runs `request` with the prompt of a command, which is a message if `chat`. `folder`: where
  // `queue` writes sessions. Only that of the last run is kept. The references must outlive it.
  DebugConsole(GenerationQueue& queue, RunEvents& events, GenerationRequest request, bool chat,
               std::filesystem::path folder)
      : queue_(queue),
        events_(events),
        request_(std::move(request)),
        chat_(chat),
        folder_(std::move(folder)) {}

  // An error is a sentence about the command. True: go on; false: the session ends.
  std::expected<bool, std::string> execute(std::string_view line);
  // Ends a run that is still stopped.
  void close();
  const std::filesystem::path& last_session() const {
    return last_session_;
  }  // empty: no run has ended

 private:
  using Done = std::expected<void, std::string>;
  struct Command {
    std::string_view name, arguments, help;
    Done (DebugConsole::*run)(std::string_view arguments);  // null: ends the session
  };
  static std::span<const Command> commands();

  Done run_prompt(std::string_view prompt);
  Done start(std::string_view prompt);
  Done set_break(std::string_view text);
  Done watch(std::string_view text);
  Done remove(std::string_view number);
  Done info(std::string_view what);
  Done step(std::string_view how);
  Done go_on(std::string_view none);
  Done print(std::string_view what);
  Done where(std::string_view none);
  Done change(const std::string& text, bool keep = false);
  Done keep(std::string_view text) { return change(std::string(text), true); }
  Done release(std::string_view number);
  Done zero(std::string_view which) { return change(std::format("zero {}", which)); }
  Done scale(std::string_view which) { return change(std::format("scale {}", which)); }
  Done set(std::string_view which) { return change(std::format("set {}", which)); }
  Done kill(std::string_view none);
  Done help(std::string_view none);

  std::expected<void, std::string> begin(std::string_view prompt);
  Done resume(RunUntil until, std::uint32_t count);
  void wait();
  void print_watched();
  void print_stop(const DebugStop& stop);
  void print_end(const JobStatus& status);
  std::unexpected<std::string> no_run() const {
    return std::unexpected(std::string("No run is stopped. Use run PROMPT or start PROMPT."));
  }

  GenerationQueue& queue_;
  RunEvents& events_;
  const GenerationRequest request_;
  const bool chat_;
  std::vector<std::string> breakpoints_;  // of the next run; while one runs, its debugger has them
  std::shared_ptr<Debugger> debugger_;    // null: nothing runs
  std::string id_;
  const std::filesystem::path folder_;
  std::filesystem::path last_session_;
  std::uint64_t seen_stop_ = 0, next_watched_ = 0;  // of this run
};

}  // namespace tt::cli
