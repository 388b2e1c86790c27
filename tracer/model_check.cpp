#include "tracer/model_check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <format>

extern char** environ;

namespace tt {

namespace {

// Reads until the child closes its end, or the deadline passed (then false).
bool read_until_closed(int fd, std::chrono::steady_clock::time_point deadline, std::string& text) {
  constexpr std::size_t kMost = 4096;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 512> block;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got <= 0) return true;
    if (text.size() < kMost) text.append(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

std::expected<void, std::string> check_model(const std::filesystem::path& checker,
                                             const std::filesystem::path& model,
                                             std::chrono::milliseconds timeout) {
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(std::format("Cannot check the model: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = checker.string();
  std::string argument = model.string();
  std::array<char*, 3> arguments = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  if (failed != 0) {
    ::close(pipe_ends[0]);
    return std::unexpected(
        std::format("Cannot check the model: {}: {}. Install tensor-trace again.", program,
                    std::strerror(failed)));
  }

  std::string said;
  const bool in_time =
      read_until_closed(pipe_ends[0], std::chrono::steady_clock::now() + timeout, said);
  ::close(pipe_ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return std::unexpected(std::format(
        "{}: llama.cpp did not finish loading it in {} s. The file is probably damaged.",
        model.string(), std::chrono::duration_cast<std::chrono::seconds>(timeout).count()));
  }
  if (WIFSIGNALED(status)) {
    return std::unexpected(std::format(
        "{}: llama.cpp crashed ({}) while loading it. The file is damaged, or newer than the "
        "library. Download or convert it again.",
        model.string(), ::strsignal(WTERMSIG(status))));
  }
  if (WEXITSTATUS(status) != 0) {
    while (said.ends_with('\n')) said.pop_back();
    return std::unexpected(said.empty() ? model.string() + ": cannot be loaded." : said);
  }
  return {};
}

}  // namespace tt
