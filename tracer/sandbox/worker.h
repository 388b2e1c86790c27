// The helper's side of a Sandbox (sandbox.h): forks a child for each job and runs its handler.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

// The connection of a child with its caller. The functions end the process when the caller has
// hung up.
class JobChannel {
 public:
  // `message_cpu_ms`: CPU time of the process after each message until it ends by SIGPROF; 0: none.
  JobChannel(int fd, std::uint32_t message_cpu_ms) : fd_(fd), message_cpu_ms_(message_cpu_ms) {}
  std::string receive();
  void send(std::string_view message);

 private:
  int fd_;
  std::uint32_t message_cpu_ms_;
};

// A kind of job. `run` is called in a child of its own, with the limits set. It may crash, loop
// and allocate. std::bad_alloc is reported as exceeding the memory limit, other exceptions as a
// crash: a handler sends expected errors as part of its result.
struct JobKind {
  std::string_view name;
  std::function<void(JobChannel&)> run;
  // False: the child is confined to computing (confinement.h) before `run` is called. True: `run`
  // calls confine_to_files() as soon as it knows the files, before it evaluates foreign input.
  bool opens_files = false;
};

// While it exists, the memory limit of this child is at most its present memory plus `bytes`.
class StricterMemoryLimit {
 public:
  explicit StricterMemoryLimit(std::uint64_t bytes);
  ~StricterMemoryLimit();
  StricterMemoryLimit(const StricterMemoryLimit&) = delete;
  StricterMemoryLimit& operator=(const StricterMemoryLimit&) = delete;

 private:
  std::uint64_t earlier_ = 0;
};

// Handler for a job with one input and one result.
JobKind job_kind(std::string_view name, std::function<std::string(std::string_view input)> run);

// Serves jobs until the caller's process ends or closes the connection; returns the exit code.
// The process must have a single thread. Call after everything was loaded that the handlers use.
int serve_jobs(const std::vector<JobKind>& kinds);

}  // namespace tt
