#include "cli/commands/memory_trial.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <format>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "analysis/common/verdict.h"
#include "cli/terminal/interrupt_guard.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/memory/pages/model_pages.h"

namespace tt::cli {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Tokens in which the order of reads is learned and the weights are pinned.
constexpr std::uint32_t kWarmup = 4;

std::vector<std::string> arguments_for(const TrialSetup& setup, const MemoryWay& way,
                                       std::optional<std::uint64_t> budget,
                                       const fs::path& session) {
  std::vector<std::string> arguments = {"tt",
                                        "record",
                                        "--model",
                                        setup.model.string(),
                                        "--no-repack",
                                        "--threads",
                                        std::to_string(setup.threads),
                                        "--tokens",
                                        "1,2,3,4",
                                        "--n-predict",
                                        std::to_string(setup.tokens + kWarmup),
                                        "--ignore-eos",
                                        "--temperature",
                                        "1",
                                        "--seed",
                                        "1",
                                        "--output",
                                        session.string(),
                                        "--force",
                                        "--quiet"};
  if (way.load_mode != nullptr) arguments.insert(arguments.end(), {"--load-mode", way.load_mode});
  if (!way.pin && !way.prefetch) return arguments;
  arguments.insert(arguments.end(),
                   {"--memory-budget", budget ? std::to_string(*budget) : std::string("auto"),
                    way.pin ? "--pin" : "--no-pin", way.prefetch ? "--prefetch" : "--no-prefetch"});
  return arguments;
}

// Starts this program in the group. Between fork and exec only functions that signal handlers may
// call.
pid_t start(std::vector<std::string> arguments, const MemoryGroup* group, const fs::path& errors) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int messages = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int members =
      group == nullptr ? -1
                       : ::open((group->folder() / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  const pid_t child = ::fork();
  if (child == 0) {
    // The exit codes of a shell: 126, the program cannot be run; 127, it was not found.
    if (nothing < 0 || messages < 0) ::_exit(126);
    if (group != nullptr && ::write(members, "0", 1) != 1) ::_exit(126);
    ::dup2(nothing, 0);
    ::dup2(nothing, 1);
    ::dup2(messages, 2);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  for (const int fd : {nothing, messages, members})
    if (fd >= 0) ::close(fd);
  return child;
}

// Of a running process; 0: it has ended.
std::uint64_t anonymous_bytes(pid_t process) {
  std::ifstream status(std::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("RssAnon:")) continue;
    std::istringstream words(line.substr(8));
    std::uint64_t kib = 0;
    words >> kib;
    return kib << 10;
  }
  return 0;
}

std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace

bool is_disturbed(const Step& step) {
  const auto verdict = verdict_of(step.conditions, step.threads);
  return verdict == Verdict::Contended || verdict == Verdict::Throttled;
}

std::expected<Trial, std::string> try_way(const TrialSetup& setup, const MemoryWay& way,
                                          std::optional<std::uint64_t> budget,
                                          const MemoryGroup* group) {
  Trial trial;
  trial.session = setup.folder / "trial.ttrace";
  const fs::path errors = setup.folder / "errors";
  drop_pages(setup.model);
  const pid_t child = start(arguments_for(setup, way, budget, trial.session), group, errors);
  if (child < 0) return std::unexpected(std::string(std::strerror(errno)));
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    trial.anonymous = std::max(trial.anonymous, anonymous_bytes(child));
    if (was_interrupted()) ::kill(child, SIGINT);
    std::this_thread::sleep_for(20ms);
  }
  if (was_interrupted()) return std::unexpected("interrupted");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string why = last_line(errors);
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return std::unexpected(signal == SIGKILL ? "killed: it needs more memory than the limit"
                           : signal != 0     ? std::format("ended by signal {}", signal)
                           : why.empty()     ? std::format("exit code {}", WEXITSTATUS(status))
                                             : why);
  }
  const auto reader = SessionReader::open(trial.session);
  if (!reader) return std::unexpected(reader.error().message);
  auto demand = token_demand(*reader, kWarmup, is_disturbed, [] { return !was_interrupted(); });
  if (!demand) return std::unexpected(demand.error().message);
  trial.demand = *std::move(demand);
  if (const auto info = reader->info()) trial.budget = info->fact_number("memory.budget");
  return trial;
}

}  // namespace tt::cli
