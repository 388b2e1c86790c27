// The traced program as a child process: it has this process's terminal, files and group; signals
// are passed on. One instance at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tt::attach {

struct AgentOptions {
  std::filesystem::path agent;   // preloaded, after what is preloaded already
  std::filesystem::path rings;   // folder for its records
  std::uint64_t ring_bytes = 0;  // of each process
  bool paused = false;           // the recording begins paused
  bool exact = false;            // ops on devices are timed, too
};

class Program {
 public:
  // `before`: called with its process id when it exists and has not begun. The error says why it
  // could not be started.
  static std::expected<Program, std::string> start(const std::vector<std::string>& command,
                                                   const AgentOptions& options,
                                                   const std::function<void(pid_t)>& before);
  ~Program();  // restores the handling of signals
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  // How often this process got SIGUSR1, which is not passed on.
  static int toggles();
  // Whether this process was told to end by a signal that another process sent, which it passed on.
  static bool told_to_end();
  // Waits for Ctrl+C or such a signal, when the program has ended; returns at once if one came.
  static void wait_for_end();
  pid_t pid() const { return pid_; }
  // Waits until it ends, at most this long. nullopt: it runs.
  std::optional<int> wait(int milliseconds);  // status as of waitpid(2)

 private:
  explicit Program(pid_t pid);
  pid_t pid_;
  int handle_ = -1;
};

}  // namespace tt::attach
