#include "tracer/gguf/model_check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <format>
#include <utility>

#include "tracer/gguf/gguf_index.h"

extern char** environ;

namespace tt {

namespace {

using Clock = std::chrono::steady_clock;

enum class ReadResult { Closed, TimedOut, Stopped };

// Reads the child's output until it closes it; keeps only the last 4096 bytes.
ReadResult read_until_closed(int fd, Clock::time_point deadline, const std::stop_token& stop,
                             std::string& text) {
  constexpr std::size_t kMaxOutputBytes = 4096;
  constexpr std::chrono::milliseconds kStopPollInterval{100};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return ReadResult::TimedOut;
    if (stop.stop_requested()) return ReadResult::Stopped;
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::min(left, kStopPollInterval).count()));
    if (ready < 0 && errno != EINTR) return ReadResult::TimedOut;
    if (ready <= 0) continue;
    std::array<char, 512> block;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got <= 0) return ReadResult::Closed;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxOutputBytes) text.erase(0, text.size() - kMaxOutputBytes);
  }
}

// Starts the child with its output on `out` and an empty signal mask. Returns 0 or an errno.
int spawn(const std::string& program, const std::string& argument, int out, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string name = program, model = argument;
  std::array<char*, 3> arguments = {name.data(), model.data(), nullptr};
  const int failed =
      ::posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t before = text.rfind('\n');
  return before == std::string::npos ? text : text.substr(before + 1);
}

}  // namespace

std::chrono::milliseconds model_check_timeout(const std::filesystem::path& model) {
  constexpr std::uint64_t kBytesPerMs = 10'000;
  std::uint64_t bytes = 0;
  if (const auto index = GgufIndex::open(model)) {
    for (const ModelFile& file : index->files()) bytes += file.size;
  }
  return std::chrono::minutes(2) + std::chrono::milliseconds(bytes / kBytesPerMs);
}

std::expected<void, std::string> check_model(const std::filesystem::path& checker,
                                             const std::filesystem::path& model,
                                             std::chrono::milliseconds timeout,
                                             const std::stop_token& stop) {
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(std::format("Cannot check the model: {}", std::strerror(errno)));
  }
  pid_t child = 0;
  const int failed = spawn(checker.string(), model.string(), pipe_ends[1], child);
  ::close(pipe_ends[1]);
  if (failed != 0) {
    ::close(pipe_ends[0]);
    return std::unexpected(
        std::format("Cannot check the model: {}: {}. Install tensor-trace again.", checker.string(),
                    std::strerror(failed)));
  }

  std::string output;
  const ReadResult result = read_until_closed(pipe_ends[0], Clock::now() + timeout, stop, output);
  ::close(pipe_ends[0]);
  if (result != ReadResult::Closed) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (result == ReadResult::Stopped) return std::unexpected("The model check was cancelled.");
  if (result == ReadResult::TimedOut) {
    return std::unexpected(std::format(
        "{}: llama.cpp did not finish loading it in {} s. The file is probably damaged. Download "
        "or convert it again.",
        model.string(), std::chrono::duration_cast<std::chrono::seconds>(timeout).count()));
  }
  if (WIFSIGNALED(status)) {
    const std::string last = last_line(std::move(output));
    return std::unexpected(std::format(
        "{}: llama.cpp crashed while loading it ({}). The file is damaged, or newer than the "
        "library. Download or convert it again.",
        model.string(), last.empty() ? ::strsignal(WTERMSIG(status)) : last));
  }
  if (WEXITSTATUS(status) != 0) {
    const std::string reason = last_line(std::move(output));
    return std::unexpected(reason.empty()
                               ? model.string() +
                                     ": llama.cpp cannot load it. Download or convert it again."
                               : reason);
  }
  return {};
}

}  // namespace tt
