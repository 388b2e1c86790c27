#include "server/app/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "program/force_exit.h"

namespace tt {

namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

sigset_t wait_set() {
  sigset_t set = stop_set();
  sigaddset(&set, SIGUSR1);
  return set;
}

std::atomic<const char*> current_stage = "";

// For a signal handler. A blocked stderr may be the cause; writing to it must not block here.
void write_if_possible(std::string_view text) {
  pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&room, 1, 0) != 1) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = wait_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

Signal StopSignals::wait(std::chrono::milliseconds time) {
  const sigset_t set = wait_set();
  const timespec left{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
  const int number = sigtimedwait(&set, nullptr, &left);
  if (number <= 0) return Signal::None;
  if (number == SIGUSR1) return Signal::NewLogin;
  record_first_signal();
  return Signal::Stop;
}

void StopSignals::begin_stop(std::chrono::seconds per_stage) {
  per_stage_ = per_stage;
  signal(SIGINT, force_exit);
  signal(SIGTERM, force_exit);
  signal(SIGALRM, [](int) {
    write_if_possible("tt-server: did not stop in time (");
    write_if_possible(current_stage.load());
    write_if_possible("), exiting now\n");
    _exit(1);
  });
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void StopSignals::stage(const char* what) {
  current_stage = what;
  alarm(static_cast<unsigned>(per_stage_.count()));
}

}  // namespace tt
