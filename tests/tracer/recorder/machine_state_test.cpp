// The conditions of steps, compared with the kernel's other counts of the same things, and read
// from recorded /proc and /sys trees of other systems.
#include "tracer/recorder/machine_state.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <format>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/engine/host_facts.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void put_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A /proc and /sys whose numbers the test sets.
class FakeSystem {
 public:
  explicit FakeSystem(const char* groups, const char* mounts) {
    put_file(root() / "proc/thread-self/schedstat", "5000 100 7\n");
    put_file(root() / "proc/self/io", "rchar: 1\nread_bytes: 0\n");
    put_file(root() / "proc/self/cgroup", groups);
    put_file(root() / "proc/self/mountinfo", mounts);
    for (const char* resource : {"cpu", "io", "memory"}) pressure(resource, 1000);
    put_file(root() / "proc/meminfo", "MemTotal: 8000 kB\nMemFree: 4000 kB\n");
    locked_kib(0);
    for (int processor : {0, 1}) {
      frequency(processor, 2'000'000);
      thermal_throttles(processor, 7);
    }
  }
  void locked_kib(int kib) const {
    put_file(root() / "proc/self/status", std::format("Name:\tx\nVmLck:\t{:8} kB\n", kib));
  }
  void frequency(int processor, std::uint64_t khz) const {
    put_file(of_processor(processor) / "cpufreq/scaling_cur_freq", std::format("{}\n", khz));
  }
  void thermal_throttles(int processor, int count) const {
    put_file(of_processor(processor) / "thermal_throttle/core_throttle_count",
             std::format("{}\n", count));
  }
  const fs::path& root() const { return folder_.path(); }
  void pressure(const std::string& resource, std::uint64_t us) const {
    put_file(root() / "proc/pressure" / resource,
             std::format("some avg10=96.77 avg60=95.58 avg300=85.25 total={}\n"
                         "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n",
                         us));
  }
  void thread(int id, const std::string& name, std::uint64_t cpu, std::uint64_t wait) const {
    const fs::path task = root() / "proc/self/task" / std::to_string(id);
    put_file(task / "comm", name + "\n");
    put_file(task / "schedstat", std::format("{} {} 12\n", cpu, wait));
  }
  static std::string own_name() { return std::format("eval-{}", gettid()); }

 private:
  fs::path of_processor(int processor) const {
    return root() / "sys/devices/system/cpu" / std::format("cpu{}", processor);
  }
  TempFolder folder_;
};

constexpr const char* kMountsV1 =
    "25 20 0:22 / /proc rw - proc proc rw\n"
    "31 25 0:27 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
    "32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
constexpr const char* kMountsV2 = "31 25 0:27 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";

TEST(CpuGroups, FilesOfTheGroupAndThoseAroundIt) {
  const struct {
    const char* name;
    const char* groups;
    const char* mounts;
    std::vector<std::string> files;
  } cases[] = {
      {"v1",
       "5:cpuset:/a\n4:cpu,cpuacct:/a/b\n0::/\n",
       kMountsV1,
       {"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat", "sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
        "sys/fs/cgroup/cpu,cpuacct/cpu.stat"}},
      {"v2",
       "0::/user.slice/x.scope\n",
       kMountsV2,
       {"sys/fs/cgroup/user.slice/x.scope/cpu.stat", "sys/fs/cgroup/user.slice/cpu.stat",
        "sys/fs/cgroup/cpu.stat"}},
      {"container whose group is the mount's root",
       "4:cpu,cpuacct:/docker/12\n",
       "32 25 0:28 /docker/12 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
       {"sys/fs/cgroup/cpu/cpu.stat"}},
      {"group outside of the mount", "0::/../../other\n", kMountsV2, {}},
      {"only cpuset", "5:cpuset:/a\n", kMountsV1, {}},
      {"nothing mounted", "0::/a\n", "", {}},
      {"no cgroups", "", "", {}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const FakeSystem system(c.groups, c.mounts);
    std::vector<std::string> files;
    for (const fs::path& file : cpu_group_files(system.root()))
      files.push_back(fs::relative(file, system.root()));
    EXPECT_EQ(files, c.files);
  }
}

TEST(CpuGroups, SmallestLimitOfTheGroupAndThoseAroundIt) {
  const FakeSystem v1("4:cpu,cpuacct:/a/b\n", kMountsV1);
  const fs::path of_v1 = v1.root() / "sys/fs/cgroup/cpu,cpuacct";
  EXPECT_EQ(cpu_limit(v1.root()), std::nullopt);
  put_file(of_v1 / "a/b/cpu.cfs_quota_us", "-1\n");
  put_file(of_v1 / "a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_limit(v1.root()), std::nullopt);
  put_file(of_v1 / "a/cpu.cfs_quota_us", "150000\n");
  put_file(of_v1 / "a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_limit(v1.root()), 1.5);

  const FakeSystem v2("0::/a/b\n", kMountsV2);
  const fs::path of_v2 = v2.root() / "sys/fs/cgroup";
  put_file(of_v2 / "a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_limit(v2.root()), std::nullopt);
  put_file(of_v2 / "a/b/cpu.max", "400000 100000\n");
  put_file(of_v2 / "a/cpu.max", "100000 50000\n");
  EXPECT_EQ(cpu_limit(v2.root()), 2.0);
}

// The default number of threads.
TEST(UsableProcessors, AreTheLeastOfAffinityAndCpuLimit) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int all = CPU_COUNT(&before);
  const FakeSystem free("0::/a/b\n", kMountsV2);
  EXPECT_EQ(usable_processors(free.root()), all);
  EXPECT_LE(usable_processors(), all) << "the limits of this process";

  const FakeSystem v2("0::/a/b\n", kMountsV2);
  const auto limit = [&](const char* text) {
    put_file(v2.root() / "sys/fs/cgroup/a/cpu.max", text);  // of a group around this one
    return usable_processors(v2.root());
  };
  EXPECT_EQ(limit("max 100000\n"), all);
  EXPECT_EQ(limit("199999 100000\n"), std::min(all, 1)) << "rounded down";
  EXPECT_EQ(limit("30000 100000\n"), 1) << "at least one";
  EXPECT_EQ(limit("90000000 100000\n"), all) << "more than there are";

  const FakeSystem v1("4:cpu,cpuacct:/a\n", kMountsV1);
  put_file(v1.root() / "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  put_file(v1.root() / "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_processors(v1.root()), 1);

  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(free.root()), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(MachineState, TakesDifferencesOfTheKernelsNumbers) {
  const FakeSystem system("4:cpu,cpuacct:/a\n", kMountsV1);
  const fs::path group = system.root() / "sys/fs/cgroup/cpu,cpuacct/a/cpu.stat";
  put_file(group, "nr_periods 3\nnr_throttled 1\nthrottled_time 5000\n");
  system.thread(1, FakeSystem::own_name(), 1'000'000, 500);
  system.thread(2, "http-worker", 77'000'000, 88'000'000);
  MachineState state(system.root());
  state.begin();
  system.thread(1, FakeSystem::own_name(), 1'700'000, 900);
  system.thread(3, FakeSystem::own_name(), 40'000, 30);  // a worker that the first step started
  system.thread(2, "http-worker", 99'000'000, 99'000'000);
  system.pressure("cpu", 1250);
  system.pressure("memory", 1001);
  put_file(group, "nr_periods 9\nnr_throttled 5\nthrottled_time 9000\n");
  system.frequency(1, 3'000'000);
  system.thermal_throttles(1, 10);
  system.locked_kib(12);
  const StepConditions step = state.take(2);
  EXPECT_EQ(step.cpu_ns, 740'000u);
  EXPECT_EQ(step.cpu_wait_ns, 430u);
  EXPECT_EQ(step.pressure_cpu_ns, 250'000u);
  EXPECT_EQ(step.pressure_io_ns, 0u);
  EXPECT_EQ(step.pressure_memory_ns, 1000u);
  EXPECT_EQ(step.throttled_ns, 4000u);
  EXPECT_EQ(step.frequency_khz, 2'500'000u);
  EXPECT_EQ(step.thermal_throttles, 3u);
  EXPECT_EQ(step.memory_limit_bytes, 8000u * 1024);
  EXPECT_EQ(step.locked_bytes, 12u * 1024);
  EXPECT_TRUE(step.disk_read_bytes && step.minor_faults && step.interval_ns);
  EXPECT_EQ(state.source(), "all");
}

TEST(MachineState, WhatTheSystemDoesNotProvideIsAbsent) {
  const FakeSystem system("", "");
  fs::remove_all(system.root() / "proc");
  fs::remove_all(system.root() / "sys");
  MachineState state(system.root());
  state.begin();
  const StepConditions step = state.take(1);
  const std::set<std::string_view> of_itself = {"queue_ns",      "sample_ns",   "detokenize_ns",
                                                "build_ns",      "evaluate_ns", "graphs_built",
                                                "resident_bytes"};
  for (const auto& [name, value, is_level] : kStepConditions) {
    const std::string_view text = name;
    if (of_itself.contains(text)) continue;
    const bool always = text == "interval_ns" || text.contains("switches") ||
                        text.contains("_faults");  // from getrusage
    EXPECT_EQ((step.*value).has_value(), always) << name;
    EXPECT_EQ(state.source().contains(name), !always) << state.source();
  }
  EXPECT_TRUE(state.source().contains("no pressure_io_ns: /proc/pressure/io: No such file"))
      << state.source();
}

TEST(MachineState, KernelWithoutSchedulerCountsHasNoCpuTimes) {
  const FakeSystem system("", "");
  put_file(system.root() / "proc/thread-self/schedstat", "0 0 0\n");
  system.thread(1, FakeSystem::own_name(), 0, 0);
  MachineState state(system.root());
  state.begin();
  EXPECT_FALSE(state.take(1).cpu_ns.has_value());
  EXPECT_TRUE(state.source().contains("the kernel does not count them")) << state.source();
}

TEST(MachineState, MissingWorkersAreNotTakenForIdleOnes) {
  const FakeSystem system("", "");
  system.thread(1, FakeSystem::own_name(), 1000, 0);
  MachineState state(system.root());
  state.begin();
  EXPECT_FALSE(state.take(4).cpu_wait_ns.has_value());
  EXPECT_TRUE(state.source().contains("of 4 threads that evaluated, 1 were found"))
      << state.source();
}

std::uint64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// This thread and one that it starts compute; a thread with a name of its own does, too, which
// does not count. A page is touched for the first time.
TEST(MachineState, CountsWhatTheThreadsDid) {
  MachineState state;
  const auto began = Clock::now();
  const std::uint64_t before = thread_cpu_ns();
  rusage usage_before{}, usage_after{};
  getrusage(RUSAGE_SELF, &usage_before);  // before begin(): what it counts is part of this
  state.begin();
  const auto compute = [](std::uint64_t ns) {
    const std::uint64_t from = thread_cpu_ns();
    while (thread_cpu_ns() - from < ns) continue;
    return thread_cpu_ns();
  };
  std::atomic<std::uint64_t> worker_ns = 0;
  std::atomic<bool> stop = false;
  std::jthread worker([&] {
    worker_ns = compute(20'000'000);
    worker_ns.notify_all();
    stop.wait(false);
  });
  std::jthread other([&] {
    pthread_setname_np(pthread_self(), "other");
    compute(20'000'000);
    stop.wait(false);
  });
  constexpr std::size_t kBytes = 1 << 20;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(pages)[at] = 1;
  compute(10'000'000);
  worker_ns.wait(0);
  const StepConditions step = state.take(2);
  const std::uint64_t after = thread_cpu_ns();
  getrusage(RUSAGE_SELF, &usage_after);
  const auto interval = std::chrono::nanoseconds(Clock::now() - began).count();
  stop = true;
  stop.notify_all();
  munmap(pages, kBytes);

  ASSERT_TRUE(step.cpu_ns && step.cpu_wait_ns) << state.source();
  const std::uint64_t own = after - before;
  EXPECT_GE(*step.cpu_ns, 30'000'000u);
  EXPECT_LE(*step.cpu_ns, own + worker_ns + 1'000'000) << "the other thread's, too";
  EXPECT_LE(*step.interval_ns, static_cast<std::uint64_t>(interval) + 1'000'000);
  // Of two threads. The counters of a thread are read at another moment than the clock of the step,
  // so the time around both is the bound.
  EXPECT_LE(*step.cpu_ns + *step.cpu_wait_ns, 2 * static_cast<std::uint64_t>(interval));
  const auto at_most = [](const auto& value, long from, long to) {
    ASSERT_TRUE(value.has_value());
    EXPECT_LE(*value, static_cast<std::uint64_t>(to - from));
  };
  EXPECT_GE(*step.minor_faults, kBytes / 4096);
  at_most(step.minor_faults, usage_before.ru_minflt, usage_after.ru_minflt + 5);
  at_most(step.major_faults, usage_before.ru_majflt, usage_after.ru_majflt);
  at_most(step.voluntary_switches, usage_before.ru_nvcsw, usage_after.ru_nvcsw + 5);
  at_most(step.involuntary_switches, usage_before.ru_nivcsw, usage_after.ru_nivcsw);
}

clockid_t clock_of(pthread_t thread) {
  clockid_t clock{};
  EXPECT_EQ(pthread_getcpuclockid(thread, &clock), 0);
  return clock;
}

// The recorder's thread and this one take turns on one processor. Both readings are of the same
// thread; one of them knows the recorder.
TEST(MachineState, TheRecordersTimeIsNotTimeOfWaiting) {
  constexpr std::uint64_t kRecorderNs = 30'000'000;
  cpu_set_t all{}, one{};
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::size_t cpu = 0;
  while (!CPU_ISSET(cpu, &all)) ++cpu;
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // inherited by the other thread
  std::atomic<bool> go = false, done = false, quit = false;
  std::jthread recorder([&] {
    pthread_setname_np(pthread_self(), "recorder");
    go.wait(false);
    const std::uint64_t from = thread_cpu_ns();
    while (thread_cpu_ns() - from < kRecorderNs) continue;
    done = true;
    quit.wait(false);
  });
  // One around `state` and one inside it: this thread may also wait between two of the lines below.
  MachineState outer, state, inner;
  state.set_recorder(recorder.native_handle());
  const auto recorder_ns = [clock = clock_of(recorder.native_handle())] {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  const std::uint64_t recorder_before = recorder_ns();
  outer.begin();
  state.begin();
  inner.begin();
  go = true;
  go.notify_one();
  while (!done) continue;
  const StepConditions least = inner.take(1), with = state.take(1), most = outer.take(1);
  const std::uint64_t recorder_ran = recorder_ns() - recorder_before;
  quit = true;
  quit.notify_one();
  recorder.join();
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  ASSERT_TRUE(least.cpu_wait_ns && with.cpu_wait_ns && most.cpu_wait_ns) << state.source();
  // Other programs may have run on this processor as well.
  EXPECT_GE(*most.cpu_wait_ns, kRecorderNs / 2);
  EXPECT_GE(*most.cpu_wait_ns - *with.cpu_wait_ns,
            std::min(*most.cpu_wait_ns, kRecorderNs) - 1'000'000);
  EXPECT_LE(*least.cpu_wait_ns, *with.cpu_wait_ns + recorder_ran + recorder_ran / 10);
}

std::uint64_t sum_of(const std::vector<Step>& steps,
                     StepConditions::Value StepConditions::* value) {
  std::uint64_t sum = 0;
  for (const Step& step : steps) {
    EXPECT_TRUE((step.conditions.*value).has_value()) << "step " << step.id.v;
    sum += (step.conditions.*value).value_or(0);
  }
  return sum;
}

// The sums of a recorded session against what the process used meanwhile.
TEST(MachineState, ConditionsOfARecordedSessionAddUp) {
  ContextOptions context = TracedModel::small_context();
  context.threads = 2;
  TracedModel model(kTestPaths.bundled_model, context);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto began = Clock::now();
  const auto run = model.run(greedy_tokens(40, 60));
  const auto wall =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - began).count());
  getrusage(RUSAGE_SELF, &after);
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  const std::vector<Step> steps = run.steps();
  const auto cpu_ns = [](const rusage& of) {
    const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000L + t.tv_usec * 1000L; };
    return static_cast<double>(ns(of.ru_utime) + ns(of.ru_stime));
  };
  // A virtual machine has no frequency and temperature.
  const std::string_view source = run.info.fact("trace.conditions");
  for (const auto& [name, value, is_level] : kStepConditions) {
    if (value == &StepConditions::resident_bytes) continue;  // on request
    EXPECT_NE((steps.front().conditions.*value).has_value(), source.contains(name))
        << name << ": " << source;
    const std::string_view text = name;
    const bool always = text != "frequency_khz" && text != "thermal_throttles";
    EXPECT_TRUE(!always || (steps.front().conditions.*value).has_value()) << name;
  }
  const std::uint64_t interval = sum_of(steps, &StepConditions::interval_ns);
  EXPECT_LE(interval, wall);
  EXPECT_GE(interval, static_cast<std::uint64_t>(steps.back().end.v)) << "from the start on";
  std::int64_t durations = 0;
  for (const Step& step : steps) durations += (step.end - step.begin).v;
  EXPECT_GE(interval, static_cast<std::uint64_t>(durations));
  const auto cpu = static_cast<double>(sum_of(steps, &StepConditions::cpu_ns));
  EXPECT_LE(cpu, cpu_ns(after) - cpu_ns(before) + 20e6) << "the process's, with the recorder";
  const auto wait = static_cast<double>(sum_of(steps, &StepConditions::cpu_wait_ns));
  EXPECT_GE(cpu + wait, 0.9 * static_cast<double>(durations)) << "one of them always wants to run";
  EXPECT_LE(sum_of(steps, &StepConditions::minor_faults),
            static_cast<std::uint64_t>(after.ru_minflt - before.ru_minflt));
  EXPECT_LE(sum_of(steps, &StepConditions::major_faults),
            static_cast<std::uint64_t>(after.ru_majflt - before.ru_majflt));
  EXPECT_LE(sum_of(steps, &StepConditions::voluntary_switches),
            static_cast<std::uint64_t>(after.ru_nvcsw - before.ru_nvcsw));
  EXPECT_LE(sum_of(steps, &StepConditions::involuntary_switches),
            static_cast<std::uint64_t>(after.ru_nivcsw - before.ru_nivcsw));
  std::printf("%zu steps: %.1f ms, CPU %.1f ms of 2 threads, waiting for a processor %.1f ms\n",
              steps.size(), static_cast<double>(interval) / 1e6, cpu / 1e6, wait / 1e6);
}

}  // namespace
}  // namespace tt::test
