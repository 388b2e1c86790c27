#include "tracer/sandbox/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <format>
#include <utility>

#include "tracer/sandbox/wire.h"

extern char** environ;

namespace tt {

using namespace sandbox_wire;

namespace {

using Kind = JobError::Kind;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kCancelCheckInterval = 20ms;
constexpr auto kHelperStartTime = 30s;  // the helper may read a vocabulary from a slow disk

std::unexpected<JobError> job_error(Kind kind, std::string reason) {
  return std::unexpected(JobError{.kind = kind, .reason = std::move(reason)});
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

JobError time_error(const JobLimits& limits) {
  return {.kind = Kind::Time,
          .reason = std::format("took more than {:.1f} s", seconds(limits.time))};
}

JobError memory_error(const JobLimits& limits) {
  return {.kind = Kind::Memory,
          .reason = std::format("needed more than {} MiB of memory", limits.memory_bytes >> 20)};
}

JobError crash_error(const JobLimits& limits, int status) {
  if (status == kForkFailed)
    return {.kind = Kind::Unavailable,
            .reason = "could not be run: no more processes can be started"};
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) == kExitMemory) return memory_error(limits);
    return {.kind = Kind::Crash, .reason = std::format("failed (code {})", WEXITSTATUS(status))};
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return memory_error(limits);  // the hard limit, or the system
  if (signal == SIGXCPU || signal == SIGPROF) {
    const auto limit = signal == SIGXCPU ? limits.cpu_time : limits.message_cpu_time;
    return {.kind = Kind::CpuTime,
            .reason = std::format("took more than {:.1f} s", seconds(limit))};
  }
  return {.kind = Kind::Crash,
          .reason = std::format("crashed the process that ran it ({})", ::strsignal(signal))};
}

}  // namespace

// ---------------------------------------------------------------- slots

struct Sandbox::Slots {
  std::mutex mutex;
  std::condition_variable freed;
  std::size_t used = 0;
};

struct SandboxJob::Slot {
  explicit Slot(std::shared_ptr<Sandbox::Slots> of) : slots(std::move(of)) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    const std::lock_guard lock(slots->mutex);
    --slots->used;
    slots->freed.notify_one();
  }
  std::shared_ptr<Sandbox::Slots> slots;
};

// ---------------------------------------------------------------- one job

SandboxJob::SandboxJob(int fd, const JobLimits& limits, std::unique_ptr<Slot> slot)
    : fd_(fd), limits_(limits), slot_(std::move(slot)) {}

SandboxJob::SandboxJob(SandboxJob&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), limits_(other.limits_), slot_(std::move(other.slot_)) {}

SandboxJob::~SandboxJob() {
  if (fd_ >= 0) ::close(fd_);
}

std::expected<void, JobError> SandboxJob::send(std::string_view message,
                                               const KeepGoing& keep_going) {
  return send_until(message, Clock::now() + limits_.time, keep_going);
}

std::expected<std::string, JobError> SandboxJob::receive(const KeepGoing& keep_going) {
  return receive_until(Clock::now() + limits_.time, keep_going);
}

std::expected<void, JobError> SandboxJob::wait(short events, Deadline deadline,
                                               const KeepGoing& keep_going) {
  for (;;) {
    if (keep_going && !keep_going()) return job_error(Kind::Cancelled, "was cancelled");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::unexpected(time_error(limits_));
    pollfd waiting{.fd = fd_, .events = events, .revents = 0};
    const auto slice =
        keep_going ? std::min(left, std::chrono::milliseconds(kCancelCheckInterval)) : left;
    if (::poll(&waiting, 1, static_cast<int>(slice.count())) > 0) return {};
  }
}

std::expected<void, JobError> SandboxJob::send_until(std::string_view message, Deadline deadline,
                                                     const KeepGoing& keep_going) {
  if (fd_ < 0) return job_error(Kind::Unavailable, "has ended");
  std::string packet;
  do {
    const std::string_view part = message.substr(0, kPartBytes);
    message.remove_prefix(part.size());
    packet.assign(1, static_cast<char>(message.empty() ? Packet::LastPart : Packet::Part));
    packet += part;
    while (::send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return {};  // the child has ended: receive() reports why
      if (auto ready = wait(POLLOUT, deadline, keep_going); !ready) {
        ::close(std::exchange(fd_, -1));
        return ready;
      }
    }
  } while (!message.empty());
  return {};
}

std::expected<std::string, JobError> SandboxJob::receive_until(Deadline deadline,
                                                               const KeepGoing& keep_going) {
  if (fd_ < 0) return job_error(Kind::Unavailable, "has ended");
  const auto fail = [this](JobError error) {
    ::close(std::exchange(fd_, -1));
    return std::unexpected(std::move(error));
  };
  std::string message;
  const auto packet = std::make_unique_for_overwrite<char[]>(1 + kPartBytes);
  for (;;) {
    const ssize_t got = ::recv(fd_, packet.get(), 1 + kPartBytes, MSG_DONTWAIT);
    // ECONNRESET: the child has ended with unread input. Reported once; then come its packets.
    if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (got < 0 && errno == EAGAIN) {
      if (auto ready = wait(POLLIN, deadline, keep_going); !ready)
        return fail(std::move(ready.error()));
      continue;
    }
    if (got < 1)
      return fail({.kind = Kind::Unavailable, .reason = "could not be run: tt-worker ended"});
    const std::string_view data(packet.get() + 1, static_cast<std::size_t>(got) - 1);
    const auto type = static_cast<Packet>(packet[0]);
    if (type == Packet::Exited) {
      int status = 0;
      if (data.size() == sizeof status) std::memcpy(&status, data.data(), sizeof status);
      return fail(crash_error(limits_, status));
    }
    if (message.size() + data.size() > limits_.result_bytes) {
      return fail(
          {.kind = Kind::ResultSize,
           .reason = std::format("has a result of more than {} MiB", limits_.result_bytes >> 20)});
    }
    message += data;
    if (type == Packet::LastPart) return message;
  }
}

// ---------------------------------------------------------------- the helper

Sandbox::Sandbox(std::filesystem::path program, std::vector<std::string> arguments)
    : program_(std::move(program)),
      arguments_(std::move(arguments)),
      slots_(std::make_shared<Slots>()) {}

Sandbox::~Sandbox() { stop_helper(); }

void Sandbox::stop_helper() {
  if (control_ < 0) return;
  ::close(std::exchange(control_, -1));
  ::kill(helper_, SIGKILL);  // its children end with it
  while (::waitpid(helper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  helper_ = -1;
}

std::expected<void, JobError> Sandbox::start_helper(const KeepGoing& keep_going) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    return job_error(Kind::Unavailable, std::format("could not be run: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], kControlFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kControlFd + 1);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A process group of its own: Ctrl-C in a terminal does not reach it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = {program_.string()};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed =
      ::posix_spawn(&helper_, program_.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  if (failed != 0) {
    ::close(sockets[0]);
    return job_error(Kind::Unavailable,
                     std::format("could not be run: {}: {}; install tensor-trace again",
                                 program_.string(), std::strerror(failed)));
  }
  control_ = sockets[0];
  const auto deadline = Clock::now() + kHelperStartTime;
  pollfd waiting{.fd = control_, .events = POLLIN, .revents = 0};
  bool cancelled = false;
  while (waiting.revents == 0 && !cancelled && Clock::now() < deadline) {
    ::poll(&waiting, 1, kCancelCheckInterval.count());
    cancelled = keep_going && !keep_going();
  }
  char ready = 0;
  if (waiting.revents != 0 && ::recv(control_, &ready, 1, 0) == 1) return {};
  stop_helper();
  if (cancelled) return job_error(Kind::Cancelled, "was cancelled");
  return job_error(Kind::Unavailable,
                   std::format("could not be run: {} did not start", program_.string()));
}

// Another thread may start the helper meanwhile. Not locked: cancelled.
std::unique_lock<std::timed_mutex> Sandbox::lock_helper(const KeepGoing& keep_going) {
  std::unique_lock lock(mutex_, std::defer_lock);
  while (!lock.try_lock_for(kCancelCheckInterval))
    if (keep_going && !keep_going()) break;
  return lock;
}

// Not part of a job's time: the helper may load a vocabulary.
std::expected<void, JobError> Sandbox::ensure_helper(const KeepGoing& keep_going) {
  const auto lock = lock_helper(keep_going);
  if (!lock) return job_error(Kind::Cancelled, "was cancelled");
  if (control_ >= 0) return {};
  return start_helper(keep_going);
}

std::expected<SandboxJob, JobError> Sandbox::start(std::string_view kind, const JobLimits& limits,
                                                   const KeepGoing& keep_going) {
  if (auto running = ensure_helper(keep_going); !running)
    return std::unexpected(std::move(running.error()));
  return start_until(kind, limits, Clock::now() + limits.time, keep_going);
}

std::expected<SandboxJob, JobError> Sandbox::start_until(std::string_view kind,
                                                         const JobLimits& limits,
                                                         Clock::time_point deadline,
                                                         const KeepGoing& keep_going) {
  std::unique_ptr<SandboxJob::Slot> slot;
  if (limits.counts) {
    std::unique_lock lock(slots_->mutex);
    const auto is_free = [this] { return slots_->used < kMaxJobs; };
    while (!slots_->freed.wait_until(lock, std::min(deadline, Clock::now() + kCancelCheckInterval),
                                     is_free)) {
      if (keep_going && !keep_going()) return job_error(Kind::Cancelled, "was cancelled");
      if (Clock::now() >= deadline) {
        return job_error(Kind::Busy,
                         std::format("had to wait: {} such jobs are running", kMaxJobs));
      }
    }
    ++slots_->used;
    slot = std::make_unique<SandboxJob::Slot>(slots_);
  }

  JobHeader header;
  kind.copy(header.kind.data(), header.kind.size() - 1);
  header.memory_bytes = limits.memory_bytes;
  header.stack_bytes = limits.stack_bytes;
  header.message_cpu_ms = static_cast<std::uint32_t>(limits.message_cpu_time.count());
  header.cpu_seconds =
      static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(limits.cpu_time).count());
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    return job_error(Kind::Unavailable, std::format("could not be run: {}", std::strerror(errno)));
  SandboxJob job(sockets[0], limits, std::move(slot));

  iovec data{.iov_base = &header, .iov_len = sizeof header};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  cmsghdr* passed = CMSG_FIRSTHDR(&message);
  passed->cmsg_level = SOL_SOCKET;
  passed->cmsg_type = SCM_RIGHTS;
  passed->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(passed), &sockets[1], sizeof(int));

  std::expected<void, JobError> started;
  {
    const auto lock = lock_helper(keep_going);
    if (!lock) started = job_error(Kind::Cancelled, "was cancelled");
    bool sent = false;
    // The second attempt is for a helper that has ended since the last job.
    for (int attempt = 0; attempt < 2 && !sent && started; ++attempt) {
      if (control_ < 0) started = start_helper(keep_going);
      if (!started) break;
      sent = ::sendmsg(control_, &message, MSG_NOSIGNAL) == sizeof header;
      if (!sent) stop_helper();
    }
    if (started && !sent)
      started = job_error(Kind::Unavailable, "could not be run: tt-worker ended");
  }
  ::close(sockets[1]);
  if (!started) return std::unexpected(std::move(started.error()));
  return job;
}

std::expected<std::string, JobError> Sandbox::run(std::string_view kind, std::string_view input,
                                                  const JobLimits& limits,
                                                  const KeepGoing& keep_going) {
  if (auto running = ensure_helper(keep_going); !running)
    return std::unexpected(std::move(running.error()));
  const auto deadline = Clock::now() + limits.time;
  auto job = start_until(kind, limits, deadline, keep_going);
  if (!job) return std::unexpected(std::move(job.error()));
  if (auto sent = job->send_until(input, deadline, keep_going); !sent)
    return std::unexpected(std::move(sent.error()));
  return job->receive_until(deadline, keep_going);
}

}  // namespace tt
