// What is done to a recording is named: other programs, a CPU limit, a disk. The same 20 times
// each: bench/conditions.sh.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <fstream>
#include <sstream>
#include <thread>

#include "analysis/tables/session_conditions.h"
#include "tests/support/models/model_on_disk.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
constexpr int kRepeats = 3;

// Child processes that compute without end, each of which may use all processors.
class BusyPrograms {
 public:
  explicit BusyPrograms(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        for (volatile unsigned n = 0;; n = n + 1) continue;
      }
      children_.push_back(child);
    }
  }
  ~BusyPrograms() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

// Threads of other programs wait while this thread, and those that it starts, want to run. So a
// busy machine is a quiet one for them.
class BeforeAllOthers {
 public:
  BeforeAllOthers() {
    const sched_param first{.sched_priority = 1};
    allowed_ = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
  }
  ~BeforeAllOthers() {
    const sched_param normal{};
    sched_setscheduler(0, SCHED_OTHER, &normal);
  }
  bool allowed() const { return allowed_; }

 private:
  bool allowed_;
};

// This process is in a group of its own, which may compute for a part of the time.
class LimitedGroup {
 public:
  LimitedGroup() {
    for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
      group_ = fs::path(mount) / ("tt-test-" + std::to_string(getpid()));
      outer_ = mount;
      std::error_code error;
      const bool v1 = fs::exists(outer_ / "cpu.cfs_quota_us");
      if ((!v1 && !fs::exists(outer_ / "cgroup.controllers")) ||
          !fs::create_directory(group_, error))
        continue;
      const bool limited = v1 ? put("cpu.cfs_period_us", "20000") && put("cpu.cfs_quota_us", "2000")
                              : put("cpu.max", "2000 20000");
      allowed_ = limited && put("cgroup.procs", std::to_string(getpid()));
      if (allowed_) return;
      fs::remove(group_, error);
    }
  }
  ~LimitedGroup() {
    if (!allowed_) return;
    std::ofstream(outer_ / "cgroup.procs") << getpid();
    std::error_code ignored;
    fs::remove(group_, ignored);
  }
  bool allowed() const { return allowed_; }

 private:
  bool put(const char* file, const std::string& text) const {
    std::ofstream out(group_ / file);
    out << text << std::flush;
    return out.good();
  }
  fs::path group_, outer_;
  bool allowed_ = false;
};

ContextOptions context_of(std::uint32_t threads) {
  ContextOptions context = TracedModel::small_context();
  context.threads = static_cast<std::int32_t>(threads);
  return context;
}

SessionConditions conditions_of(const TracedModel::Run& run) {
  EXPECT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  auto conditions = session_conditions(run.reader());
  EXPECT_TRUE(conditions.has_value());
  std::printf("%s\n", conditions->text.c_str());
  return *std::move(conditions);
}

TEST(PlantedConditions, BusyProgramsAreNamed) {
  TracedModel model(kTestPaths.bundled_model, context_of(2));
  const BusyPrograms busy(2 * std::thread::hardware_concurrency());
  for (int i = 0; i < kRepeats; ++i) {
    const SessionConditions found = conditions_of(model.run(greedy_tokens(40, 20)));
    EXPECT_EQ(found.verdict, Verdict::Contended) << found.text;
  }
}

TEST(PlantedConditions, CpuLimitIsNamed) {
  TracedModel model(kTestPaths.bundled_model, context_of(2));
  const LimitedGroup group;
  if (!group.allowed()) {
    std::printf(
        "This process may not limit its CPU time (cgroup): see Verdict.*, MachineState.*\n");
    return;
  }
  // Other programs may take more of the time than the limit: that run is contended, and says so.
  int named = 0;
  for (int i = 0; i < 20 && named < kRepeats; ++i) {
    const SessionConditions found = conditions_of(model.run(greedy_tokens(20, 20)));
    EXPECT_NE(found.verdict, Verdict::Clean) << found.text;
    named += found.verdict == Verdict::Throttled ? 1 : 0;
  }
  EXPECT_EQ(named, kRepeats);
}

TEST(PlantedConditions, DiskIsNamedAndAQuietRunIsClean) {
  const ModelOnDisk file;
  const BeforeAllOthers first;
  if (!first.allowed()) {
    std::printf("This process may not run before others, so no run is quiet: see Verdict.*\n");
    return;
  }
  ModelOptions options;
  options.repack = false;
  TracedModel model(file.path, context_of(1), options);
  (void)model.run(greedy_tokens(40, 1));  // learns the graphs, touches all weights
  for (int i = 0; i < kRepeats; ++i) {
    file.drop_pages();
    const SessionConditions cold = conditions_of(model.run(greedy_tokens(40, 1)));
    EXPECT_EQ(cold.verdict, Verdict::Disk) << cold.text;
    (void)model.run(greedy_tokens(40, 100));  // touches the pages of the other tokens
    const SessionConditions warm = conditions_of(model.run(greedy_tokens(40, 100)));
    EXPECT_EQ(warm.verdict, Verdict::Clean) << warm.text;
  }
}

}  // namespace
}  // namespace tt::test
