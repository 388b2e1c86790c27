#include "attach/collector/live_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace tt::attach {

std::expected<LiveServer, std::string> LiveServer::start(const std::filesystem::path& server,
                                                         const std::filesystem::path& folder,
                                                         const std::filesystem::path& program,
                                                         std::uint16_t port) {
  std::array<int, 2> output{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0)
    return std::unexpected("pipe: " + std::system_category().message(errno));
  const std::string number = std::to_string(port);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected("fork: " + std::system_category().message(errno));
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);  // the parent died before PDEATHSIG was set
    ::dup2(output[1], STDOUT_FILENO);
    ::execl(server.c_str(), server.c_str(), "--no-model", "--host", "127.0.0.1", "--port",
            number.c_str(), "--data-dir", folder.c_str(), "--program-file", program.c_str(),
            "--log-level", "error", nullptr);
    ::_exit(127);  // as a shell: it could not be executed; the parent reads no address
  }
  ::close(output[1]);
  LiveServer started(pid, output[0]);
  // Its first line is its address; what is wrong it says itself, on standard error.
  for (char byte = 0; ::read(output[0], &byte, 1) == 1 && byte != '\n';) started.url_ += byte;
  if (!started.url_.starts_with("http"))
    return std::unexpected("--live: " + server.string() + " does not start.");
  return started;
}

LiveServer::LiveServer(LiveServer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      url_(std::move(other.url_)) {}

LiveServer::~LiveServer() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
}

}  // namespace tt::attach
