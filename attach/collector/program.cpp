#include "attach/collector/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "attach/agent/ring_format.h"

namespace tt::attach {

namespace {

std::atomic<pid_t> child{0};
std::atomic<int> toggled{0};
std::atomic<bool> ending{false};  // told to end
void toggle(int) { ++toggled; }

// The terminal signals the whole group itself; the program decides what an interrupt means.
constexpr std::array kFromTerminal = {SIGINT, SIGQUIT};
constexpr std::array kPassedOn = {SIGTERM, SIGHUP, SIGUSR2, SIGCONT, SIGWINCH};

void pass_on(int number) {
  if (number == SIGTERM || number == SIGHUP || number == SIGINT) ending = true;
  if (const pid_t pid = child.load(); pid > 0) ::kill(pid, number);
}
// An interrupt that was sent to this process only, not by the terminal.
void pass_interrupt(int number, siginfo_t* info, void*) {
  if (info != nullptr && info->si_code <= 0 && info->si_pid != 0) pass_on(number);
}

void set_handlers(bool passing) {
  for (const int number : kFromTerminal) {
    struct sigaction action{};
    if (passing) {
      action.sa_sigaction = pass_interrupt;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
    } else {
      action.sa_handler = SIG_DFL;
    }
    ::sigaction(number, &action, nullptr);
  }
  struct sigaction toggling{};
  toggling.sa_handler = passing ? toggle : SIG_DFL;
  toggling.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &toggling, nullptr);
  for (const int number : kPassedOn) {
    struct sigaction action{};
    action.sa_handler = passing ? pass_on : SIG_DFL;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
}

void set_environment(const AgentOptions& options) {
  std::string preloaded;
  if (const char* already = std::getenv("LD_PRELOAD"); already != nullptr && *already != '\0')
    preloaded = std::string(already) + ":";
  ::setenv("LD_PRELOAD", (preloaded + options.agent.string()).c_str(), 1);
  ::setenv(kFolderVariable, options.rings.c_str(), 1);
  ::setenv(kCapacityVariable, std::to_string(options.ring_bytes).c_str(), 1);
  if (options.paused) ::setenv(kPausedVariable, "1", 1);
  if (options.exact) ::setenv(kExactVariable, "1", 1);
}

}  // namespace

std::expected<Program, std::string> Program::start(const std::vector<std::string>& command,
                                                   const AgentOptions& options,
                                                   const std::function<void(pid_t)>& before) {
  std::array<int, 2> go{}, failed{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0 || ::pipe2(failed.data(), O_CLOEXEC) != 0)
    return std::unexpected("pipe: " + std::system_category().message(errno));
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected("fork: " + std::system_category().message(errno));
  if (pid == 0) {
    char byte = 0;
    ::close(go[1]);
    // If `tt attach` is killed before it says go, the program does not start.
    if (::read(go[0], &byte, 1) != 1) ::_exit(1);
    set_environment(options);
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(failed[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(go[0]);
  ::close(failed[1]);
  before(pid);
  child = pid;
  set_handlers(true);
  Program program(pid);
  [[maybe_unused]] const auto written = ::write(go[1], "", 1);
  ::close(go[1]);
  int error = 0;
  const bool refused = ::read(failed[0], &error, sizeof error) == sizeof error;
  ::close(failed[0]);
  if (refused) {
    ::waitpid(pid, nullptr, 0);
    return std::unexpected(command[0] + ": " + std::system_category().message(error));
  }
  return program;
}

Program::Program(pid_t pid)
    : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), handle_(std::exchange(other.handle_, -1)) {}

Program::~Program() {
  if (handle_ >= 0) ::close(handle_);
  if (pid_ <= 0) return;
  child = 0;
  set_handlers(false);
}

int Program::toggles() { return toggled.load(); }

bool Program::told_to_end() { return ending.load(); }

void Program::wait_for_end() {
  sigset_t signals{};
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  int number = 0;
  if (!told_to_end()) ::sigwait(&signals, &number);
}

std::optional<int> Program::wait(int milliseconds) {
  pollfd ended{.fd = handle_, .events = POLLIN, .revents = 0};
  ::poll(&ended, handle_ >= 0 ? 1 : 0, milliseconds);
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  child = 0;
  return status;
}

}  // namespace tt::attach
