// A function run in a process of its own, which a test may kill.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace tt::testing {

class ChildProcess {
 public:
  // `body` gives the exit status. It must not use gtest: the child ends with _exit().
  template <class Body>
  explicit ChildProcess(Body body) : pid_(fork()) {
    if (pid_ < 0) std::abort();
    if (pid_ == 0) _exit(body());
  }
  ~ChildProcess() {
    if (pid_ > 0) kill_now();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void kill_now() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // Its exit status; -1 if a signal ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

}  // namespace tt::testing
