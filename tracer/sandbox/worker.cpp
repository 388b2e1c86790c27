#include "tracer/sandbox/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <utility>

#include "tracer/sandbox/confinement.h"
#include "tracer/sandbox/wire.h"

namespace tt {

using namespace sandbox_wire;

std::string JobChannel::receive() {
  std::string message;
  const auto packet = std::make_unique_for_overwrite<char[]>(1 + kPartBytes);
  for (;;) {
    const ssize_t got = ::recv(fd_, packet.get(), 1 + kPartBytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 1) ::_exit(0);
    message.append(packet.get() + 1, static_cast<std::size_t>(got) - 1);
    if (static_cast<Packet>(packet[0]) != Packet::LastPart) continue;
    if (message_cpu_ms_ > 0) {
      const itimerval limit{
          .it_interval = {},
          .it_value = {.tv_sec = message_cpu_ms_ / 1000, .tv_usec = message_cpu_ms_ % 1000 * 1000}};
      ::setitimer(ITIMER_PROF, &limit, nullptr);
    }
    return message;
  }
}

void JobChannel::send(std::string_view message) {
  std::string packet;
  do {
    const std::string_view part = message.substr(0, kPartBytes);
    message.remove_prefix(part.size());
    packet.assign(1, static_cast<char>(message.empty() ? Packet::LastPart : Packet::Part));
    packet += part;
    while (::send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0)
      if (errno != EINTR) ::_exit(0);
  } while (!message.empty());
}

JobKind job_kind(std::string_view name, std::function<std::string(std::string_view)> run) {
  return {.name = name, .run = [run = std::move(run)](JobChannel& channel) {
            channel.send(run(channel.receive()));
          }};
}

namespace {

// Of this child, opened before it is confined.
int statm_of_child = -1;  // NOLINT: a child has one job

// What RLIMIT_DATA counts, and the stack.
std::uint64_t data_bytes() {
  std::array<char, 256> text{};
  if (::pread(statm_of_child, text.data(), text.size() - 1, 0) <= 0) return 0;
  std::uint64_t pages = 0;
  std::istringstream statm(text.data());
  for (int column = 0; column < 6; ++column) statm >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, std::uint64_t maximum, std::uint64_t hard = 0) {
  const rlimit both{.rlim_cur = maximum, .rlim_max = std::max(maximum, hard)};
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

}  // namespace

StricterMemoryLimit::StricterMemoryLimit(std::uint64_t bytes) {
  rlimit both{};
  ::getrlimit(RLIMIT_DATA, &both);
  earlier_ = both.rlim_cur;
  both.rlim_cur = std::min<std::uint64_t>(both.rlim_cur, data_bytes() + bytes);
  ::setrlimit(RLIMIT_DATA, &both);
}

StricterMemoryLimit::~StricterMemoryLimit() {
  rlimit both{};
  ::getrlimit(RLIMIT_DATA, &both);
  both.rlim_cur = earlier_;
  ::setrlimit(RLIMIT_DATA, &both);
}

namespace {

class Helper {
 public:
  explicit Helper(const std::vector<JobKind>& kinds) : kinds_(kinds) {}

  int run() {
    prepare();
    const char ready = 'r';
    if (::send(kControlFd, &ready, 1, MSG_NOSIGNAL) != 1) return 1;
    while (wait_for_events()) {
      reap();
      report();
    }
    for (const Child& child : children_) ::kill(child.pid, SIGKILL);
    return 0;
  }

 private:
  struct Child {
    pid_t pid;
    int fd;
    bool ended = false;
    int status = 0;
  };

  // SIGCHLD arrives only while the process waits, so that no child is missed.
  void prepare() {
    for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(ignored, SIG_IGN);
    std::signal(SIGCHLD, [](int) {});
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
    std::ofstream("/proc/self/oom_score_adj") << 1000;
    ::tzset();                              // the children cannot read the time zone
    ::setenv("GGML_NO_BACKTRACE", "1", 1);  // ggml would start a debugger when it aborts
    limit(RLIMIT_CORE, 0);
  }

  // False: the caller has ended.
  bool wait_for_events() {
    std::vector<pollfd> events = {{.fd = kControlFd, .events = POLLIN, .revents = 0}};
    for (const Child& child : children_) {
      const short wanted = child.ended ? POLLOUT : 0;  // a hang-up is always reported
      events.push_back({.fd = child.fd, .events = wanted, .revents = 0});
    }
    sigset_t none;
    sigemptyset(&none);
    if (::ppoll(events.data(), events.size(), nullptr, &none) < 0) return errno == EINTR;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if ((events[i + 1].revents & (POLLHUP | POLLERR)) == 0) continue;
      Child& child = children_[i];
      if (!child.ended) ::kill(child.pid, SIGKILL);  // not reaped yet: the pid is still its own
      ::close(std::exchange(child.fd, -1));
    }
    return events[0].revents == 0 || accept_job();
  }

  bool accept_job() {
    JobHeader header;
    iovec data{.iov_base = &header, .iov_len = sizeof header};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    const ssize_t got = ::recvmsg(kControlFd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    const cmsghdr* passed = CMSG_FIRSTHDR(&message);
    if (got != sizeof header || passed == nullptr) return false;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(passed), sizeof fd);
    const pid_t helper = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) run_job(header, fd, helper);
    Child& child = children_.emplace_back(Child{.pid = pid, .fd = fd});
    if (pid < 0) {
      child.ended = true;
      child.status = kForkFailed;
    }
    return true;
  }

  [[noreturn]] void run_job(const JobHeader& header, int fd, pid_t helper) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != helper) ::_exit(0);
    ::close(kControlFd);
    for (const Child& other : children_)
      if (other.fd >= 0) ::close(other.fd);
    std::signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);

    const std::string_view name = header.kind.data();
    const auto kind = std::ranges::find(kinds_, name, &JobKind::name);
    if (kind == kinds_.end()) ::_exit(kExitUnknownKind);
    // SIGXCPU at the first limit, SIGKILL at the second.
    if (header.cpu_seconds > 0) limit(RLIMIT_CPU, header.cpu_seconds, header.cpu_seconds + 1);
    limit(RLIMIT_STACK, header.stack_bytes);
    statm_of_child = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    limit(RLIMIT_DATA, data_bytes() + header.memory_bytes);
    if (!kind->opens_files) confine_to_computing();
    try {
      JobChannel channel(fd, header.message_cpu_ms);
      kind->run(channel);
    } catch (const std::bad_alloc&) {
      ::_exit(kExitMemory);
    } catch (const std::exception&) {
      ::_exit(kExitException);
    }
    ::_exit(0);
  }

  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = std::ranges::find_if(
          children_, [pid](const Child& c) { return c.pid == pid && !c.ended; });
      if (child == children_.end()) continue;
      child->ended = true;
      child->status = status;
    }
  }

  // Sends the wait status of ended children. A child whose caller does not read stays until the
  // caller reads or hangs up.
  void report() {
    std::erase_if(children_, [](const Child& child) {
      if (!child.ended) return false;
      if (child.fd < 0) return true;
      std::array<char, 1 + sizeof child.status> packet{static_cast<char>(Packet::Exited)};
      std::memcpy(packet.data() + 1, &child.status, sizeof child.status);
      const ssize_t sent =
          ::send(child.fd, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      ::close(child.fd);
      return true;
    });
  }

  const std::vector<JobKind>& kinds_;
  std::vector<Child> children_;
};

}  // namespace

int serve_jobs(const std::vector<JobKind>& kinds) { return Helper(kinds).run(); }

}  // namespace tt
