// A function run in a child process, which a test may kill.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace tt::test {

class ChildProcess {
 public:
  // `body` returns the exit status. It must not use gtest: the child ends with _exit().
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

  pid_t pid() const { return pid_; }
  void kill_now() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // Returns the exit status; -1 if a signal ended the process.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

// A T in memory shared with child processes forked later: their writes remain after they die.
template <class T>
class Shared {
 public:
  Shared()
      : page_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        value_(new (page_) T) {}
  ~Shared() { munmap(page_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  void* page_;
  T* value_;
};

}  // namespace tt::test
