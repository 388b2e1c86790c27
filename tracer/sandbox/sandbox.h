// Runs jobs in child processes with limits: parsing and evaluating what clients and files say,
// where a library could crash, run for minutes or use all memory.
//
//   caller                          helper (tt-worker)         child
//   Sandbox::start  ── job, fd ──>  fork  ──────────────────>  sets its limits, runs the handler
//   SandboxJob      <──────── messages on the job's socket ──> JobChannel (worker.h)
//   ~SandboxJob     ── hang-up ──>  SIGKILL  ───────────────>  ends
//
// The helper is a process of its own with a single thread, started at the first job, so that
// forking is safe and cheap (about 1 ms). It does nothing but fork, kill and reap. If it dies, the
// next job starts another one.
//
// What is limited, and by whom:
//   wall-clock time   the caller's deadline; the helper then kills the child by its pid
//   cancellation      the caller's callback, checked every 20 ms
//   CPU time          RLIMIT_CPU of the child, in case the caller itself is stopped; per message a
//                     timer of the child, which tells a long job from a busy machine
//   memory            RLIMIT_DATA of the child: the private writable memory of the helper plus
//                     JobLimits::memory_bytes. Mapped files do not count
//   stack             RLIMIT_STACK of the child; exceeding it is a crash (SIGSEGV) of the child
//   result            bytes that the caller accepts
//   number of jobs    kMaxJobs at a time; further ones wait within their own time limit. Jobs that
//                     take minutes and are limited otherwise do not count (JobLimits::counts)
// Children write no core files, and the kernel kills them before other processes if memory runs
// out (oom_score_adj).
//
// Jobs are trusted code on untrusted input. Should the input make the code do something else, the
// child has no network and can start no program; it can open no file, or only those that its job
// needs (confinement.h).
//
// Any thread. A job must not outlive its Sandbox.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

struct JobLimits {
  std::chrono::milliseconds time{1500};           // until the result has arrived
  std::chrono::milliseconds cpu_time{2000};       // of the child in total; rounded up; 0: unlimited
  std::chrono::milliseconds message_cpu_time{0};  // for each message to the child; 0: unlimited
  std::uint64_t memory_bytes = 192U << 20;        // private writable memory that the child adds
  std::uint64_t stack_bytes = 4U << 20;           // of the child's only thread
  std::uint64_t result_bytes = 64U << 20;         // per message of the child
  bool counts = true;                             // against kMaxJobs
};

struct JobError {
  enum class Kind : std::uint8_t {
    Time,         // JobLimits::time, including the time for a free slot and the transfer: also if
                  // the machine is busy
    CpuTime,      // JobLimits::cpu_time, message_cpu_time: the job itself needs that long
    Memory,       // the child could not allocate
    Crash,        // ended by a signal or an unexpected exception; also: the stack limit
    ResultSize,   // JobLimits::result_bytes
    Cancelled,    // keep_going returned false
    Busy,         // no slot became free within the time limit
    Unavailable,  // the helper cannot be started or ended
  };
  Kind kind;
  // A predicate for a message: "took more than 2.0 s", "needed more than 192 MiB of memory".
  std::string reason;
};

// Returns false to cancel.
using KeepGoing = std::function<bool()>;

// One running child. Destroying it kills the child.
class SandboxJob {
 public:
  SandboxJob(SandboxJob&& other) noexcept;
  SandboxJob& operator=(SandboxJob&&) = delete;
  ~SandboxJob();

  // Exchanges messages with the handler. Each call has the time limit of the job's JobLimits.
  // After an error the job is over: every later call fails.
  void set_time_limit(std::chrono::milliseconds time) { limits_.time = time; }  // of later calls
  std::expected<void, JobError> send(std::string_view message, const KeepGoing& keep_going = {});
  std::expected<std::string, JobError> receive(const KeepGoing& keep_going = {});

 private:
  friend class Sandbox;
  struct Slot;
  using Deadline = std::chrono::steady_clock::time_point;
  SandboxJob(int fd, const JobLimits& limits, std::unique_ptr<Slot> slot);
  std::expected<void, JobError> send_until(std::string_view message, Deadline deadline,
                                           const KeepGoing& keep_going);
  std::expected<std::string, JobError> receive_until(Deadline deadline,
                                                     const KeepGoing& keep_going);
  std::expected<void, JobError> wait(short events, Deadline deadline, const KeepGoing& keep_going);
  JobError ended();

  int fd_;
  JobLimits limits_;
  std::unique_ptr<Slot> slot_;
};

class Sandbox {
 public:
  static constexpr std::size_t kMaxJobs = 4;

  // `program`: tt-worker, started with `arguments`, which select what it loads before it forks.
  explicit Sandbox(std::filesystem::path program, std::vector<std::string> arguments = {});
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  const std::filesystem::path& program() const { return program_; }

  // Starts the helper now, so that it does not inherit the low priority of a thread whose job is
  // the first. If this fails, the first job tries again.
  void prepare() { static_cast<void>(ensure_helper({})); }

  // Runs the handler `kind` (worker/main.cpp lists them) on `input` and returns its result.
  std::expected<std::string, JobError> run(std::string_view kind, std::string_view input,
                                           const JobLimits& limits = {},
                                           const KeepGoing& keep_going = {});
  // Starts the handler `kind` for an exchange of several messages.
  std::expected<SandboxJob, JobError> start(std::string_view kind, const JobLimits& limits = {},
                                            const KeepGoing& keep_going = {});

 private:
  friend class SandboxJob;
  std::expected<SandboxJob, JobError> start_until(std::string_view kind, const JobLimits& limits,
                                                  std::chrono::steady_clock::time_point deadline,
                                                  const KeepGoing& keep_going);
  std::unique_lock<std::timed_mutex> lock_helper(const KeepGoing& keep_going);
  std::expected<void, JobError> ensure_helper(const KeepGoing& keep_going);
  // These require mutex_.
  std::expected<void, JobError> start_helper(const KeepGoing& keep_going);
  void stop_helper();

  struct Slots;
  const std::filesystem::path program_;
  const std::vector<std::string> arguments_;
  std::shared_ptr<Slots> slots_;
  std::timed_mutex mutex_;
  pid_t helper_ = -1;
  int control_ = -1;  // socket to the helper; -1: not running
};

}  // namespace tt
