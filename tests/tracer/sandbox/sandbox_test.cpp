#include "tracer/sandbox/sandbox.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fair_clock.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/sandbox/confinement.h"

namespace tt {
namespace {

using namespace std::chrono_literals;
using Kind = JobError::Kind;
using test::wait_until;

class SandboxTest : public ::testing::Test {
 protected:
  // Next to this program.
  static std::filesystem::path worker() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sandbox_test_worker";
  }
  Sandbox sandbox_{worker()};
};

bool is_running(pid_t pid) { return ::kill(pid, 0) == 0; }

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST_F(SandboxTest, ReturnsTheResult) {
  EXPECT_EQ(sandbox_.run("echo", "hello").value(), "hello");
  EXPECT_EQ(sandbox_.run("echo", "").value(), "");
}

TEST_F(SandboxTest, TransfersLargeInputsAndResults) {
  for (const std::size_t bytes : {65535UL, 65536UL, 65537UL, 16UL << 20}) {
    const std::string text(bytes, 'x');
    // As long as a busy machine needs for 16 MiB.
    EXPECT_EQ(sandbox_.run("echo", text, {.time = 60s}).value(), text);
  }
}

TEST_F(SandboxTest, EachJobRunsInItsOwnProcess) {
  std::set<std::string> pids;
  for (int i = 0; i < 5; ++i) pids.insert(sandbox_.run("pid", "").value());
  EXPECT_EQ(pids.size(), 5U);
  EXPECT_FALSE(pids.contains(std::to_string(::getpid())));
}

TEST_F(SandboxTest, AJobTakesAFewMilliseconds) {
  ASSERT_TRUE(sandbox_.run("echo", "").has_value());
  const auto began = test::FairClock::now();
  constexpr int kJobs = 50;
  for (int i = 0; i < kJobs; ++i) ASSERT_TRUE(sandbox_.run("echo", "x").has_value());
  EXPECT_LT((test::FairClock::now() - began) / kJobs, 20ms);
}

TEST_F(SandboxTest, EnforcesTheTimeLimit) {
  const auto began = test::FairClock::now();
  const auto result = sandbox_.run("loop", "", {.time = 200ms});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Time);
  EXPECT_EQ(result.error().reason, "took more than 0.2 s");
  EXPECT_LT(test::FairClock::now() - began, 2s);
}

TEST_F(SandboxTest, EnforcesTheCpuLimitWithoutTheCaller) {
  const auto result = sandbox_.run("loop", "", {.time = 60s, .cpu_time = 1s});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::CpuTime);
  EXPECT_EQ(result.error().reason, "took more than 1.0 s");
}

TEST_F(SandboxTest, EnforcesTheCpuLimitPerMessage) {
  auto job = sandbox_.start("spinner", {.time = 60s, .cpu_time = 0s, .message_cpu_time = 300ms});
  ASSERT_TRUE(job.has_value());
  // In total more than the limit of one message.
  for (const char* ms : {"200", "200", "200"}) {
    ASSERT_TRUE(job->send(ms).has_value());
    EXPECT_EQ(job->receive().value(), ms);
  }
  ASSERT_TRUE(job->send("20000").has_value());
  const auto result = job->receive();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::CpuTime);
  EXPECT_EQ(result.error().reason, "took more than 0.3 s");
}

TEST_F(SandboxTest, EnforcesTheMemoryLimit) {
  const JobLimits limits{.memory_bytes = 64U << 20};
  EXPECT_EQ(sandbox_.run("allocate", "32000000", limits).value(), "32000000");
  const auto result = sandbox_.run("allocate", "100000000", limits);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Memory);
  EXPECT_EQ(result.error().reason, "needed more than 64 MiB of memory");
}

TEST_F(SandboxTest, EnforcesTheStackLimit) {
  EXPECT_EQ(sandbox_.run("recurse", "1000").value(), "1000");
  const auto result = sandbox_.run("recurse", "100000");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Crash);
}

TEST_F(SandboxTest, LimitsTheResult) {
  const auto result = sandbox_.run("echo", std::string(3U << 20, 'x'), {.result_bytes = 2U << 20});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::ResultSize);
  EXPECT_EQ(result.error().reason, "has a result of more than 2 MiB");
}

TEST_F(SandboxTest, ReportsCrashes) {
  for (const char* kind : {"abort", "throw", "no such kind"}) {
    const auto result = sandbox_.run(kind, "");
    ASSERT_FALSE(result.has_value()) << kind;
    EXPECT_EQ(result.error().kind, Kind::Crash) << kind;
    EXPECT_FALSE(result.error().reason.empty()) << kind;
  }
  EXPECT_EQ(sandbox_.run("echo", "next").value(), "next");
}

TEST_F(SandboxTest, CancelsWithinMilliseconds) {
  int checks = 0;
  const auto began = test::FairClock::now();
  const auto result =
      sandbox_.run("loop", "", {.time = 60s, .cpu_time = 60s}, [&] { return ++checks < 10; });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Cancelled);
  EXPECT_LT(test::FairClock::now() - began, 2s);
}

TEST_F(SandboxTest, ExchangesMessages) {
  auto job = sandbox_.start("counter");
  ASSERT_TRUE(job.has_value());
  for (const auto& [number, sum] : {std::pair{"1", "1"}, {"20", "21"}, {"-4", "17"}}) {
    ASSERT_TRUE(job->send(number).has_value());
    EXPECT_EQ(job->receive().value(), sum);
  }
  ASSERT_TRUE(job->send("not a number").has_value());
  EXPECT_EQ(job->receive().error().kind, Kind::Crash);
  EXPECT_FALSE(job->receive().has_value());
  EXPECT_FALSE(job->send("1").has_value());
}

TEST_F(SandboxTest, KillsTheChildOfADestroyedJob) {
  pid_t child = 0;
  {
    auto job = sandbox_.start("sleeper");
    child = std::stoi(job->receive().value());
    EXPECT_TRUE(is_running(child));
  }
  EXPECT_TRUE(wait_until([&] { return !is_running(child); }));
}

TEST_F(SandboxTest, ChildrenEndWithTheSandbox) {
  pid_t child = 0;
  {
    Sandbox inner(worker());
    auto job = inner.start("sleeper");
    child = std::stoi(job->receive().value());
  }
  EXPECT_TRUE(wait_until([&] { return !is_running(child); }));
}

TEST_F(SandboxTest, LimitsTheNumberOfJobs) {
  std::vector<SandboxJob> jobs;
  for (std::size_t i = 0; i < Sandbox::kMaxJobs; ++i)
    jobs.push_back(sandbox_.start("counter").value());
  const auto result = sandbox_.run("echo", "", {.time = 100ms});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Busy);
  std::jthread soon([&] {
    std::this_thread::sleep_for(50ms);  // run() waits for a free slot meanwhile
    jobs.pop_back();
  });
  EXPECT_EQ(sandbox_.run("echo", "a slot is free").value(), "a slot is free");
}

TEST_F(SandboxTest, JobsRunConcurrently) {
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < 20; ++n)
          if (sandbox_.run("echo", std::to_string(i * 100 + n), {.time = 30s}) ==
              std::to_string(i * 100 + n))
            ++done;
      });
    }
  }
  EXPECT_EQ(done, 16 * 20);
}

TEST_F(SandboxTest, StartsAnotherHelperWhenItWasKilled) {
  auto job = sandbox_.start("sleeper");
  const pid_t child = std::stoi(job->receive().value());
  std::string stat;  // "PID (NAME) STATE PPID ..."
  {
    std::FILE* file = std::fopen(("/proc/" + std::to_string(child) + "/stat").c_str(), "r");
    ASSERT_NE(file, nullptr);
    char line[256] = {};
    ASSERT_NE(std::fgets(line, sizeof line, file), nullptr);
    std::fclose(file);
    stat = line;
  }
  const pid_t helper = std::stoi(stat.substr(stat.rfind(')') + 4));
  ASSERT_NE(helper, ::getpid());
  ASSERT_EQ(::kill(helper, SIGKILL), 0);
  const auto result = job->receive();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Unavailable);
  EXPECT_TRUE(wait_until([&] { return !is_running(child); }));
  EXPECT_EQ(sandbox_.run("echo", "again").value(), "again");
}

TEST_F(SandboxTest, LeaksNoFilesAndNoChildren) {
  ASSERT_TRUE(sandbox_.run("echo", "").has_value());
  const std::size_t before = open_files();
  for (int i = 0; i < 20; ++i) {
    (void)sandbox_.run("echo", "x");
    (void)sandbox_.run("abort", "");
    (void)sandbox_.run("loop", "", {.time = 5ms});
  }
  EXPECT_EQ(open_files(), before);
}

// Foreign input that takes over a child: what can it do?
TEST_F(SandboxTest, ChildrenOnlyCompute) {
  const test::TempFolder folder;
  std::ofstream(folder / "file") << "text";
  const std::string file = (folder / "file").string();
  const std::string own = std::to_string(::getpid());
  const std::string tries[] = {"read " + file,
                               "read /etc/passwd",
                               "read /proc/" + own + "/environ",
                               "read /proc/self/mem",
                               "write " + file,
                               "truncate " + file,
                               "create " + file + "3",
                               "delete " + file,
                               "rename " + file,
                               "chmod " + file,
                               "mkdir " + file + "4",
                               "list /",
                               "tcp ",
                               "udp ",
                               "unix ",
                               "connect ",
                               "exec ",
                               "signal " + own,
                               "trace " + own};
  for (const std::string& what : tries)
    EXPECT_EQ(sandbox_.run("try", what).value(), "Operation not permitted") << what;
  EXPECT_EQ(sandbox_.run("try", "thread ").value(), "yes");
  EXPECT_EQ(std::filesystem::file_size(folder / "file"), 4U);
}

// As a model check: it reads its files and no others. Without Landlock it can read others too, but
// has no network and starts no program.
TEST_F(SandboxTest, AChildReadsOnlyItsFiles) {
  const test::TempFolder folder, other;
  std::ofstream(folder / "file") << "text";
  std::ofstream(other / "file") << "text";
  std::filesystem::create_symlink(other / "file", folder / "link");
  auto job = sandbox_.start("try with files").value();
  ASSERT_TRUE(job.send(folder.path().string()).has_value());
  const auto outcome = [&](const std::string& what) {
    EXPECT_TRUE(job.send(what).has_value());
    return job.receive().value();
  };
  EXPECT_EQ(outcome("read " + (folder / "file").string()), "yes");
  EXPECT_EQ(outcome("list " + folder.path().string()), "yes");
  EXPECT_EQ(outcome("thread "), "yes");
  const bool landlock = !missing_confinement().contains("Landlock");
  for (const std::string& what :
       {"read " + (other / "file").string(), "read " + (folder / "link").string(),
        "read " + (folder.path() / ".." / other.path().filename() / "file").string(),
        std::string("read /etc/passwd"), "list " + other.path().string(),
        "write " + (folder / "file").string(), "truncate " + (folder / "file").string(),
        "create " + (folder / "new").string(), "rename " + (folder / "file").string(),
        "mkdir " + (folder / "new").string(), "delete " + (folder / "file").string()}) {
    const std::string found = outcome(what);
    if (landlock) {
      EXPECT_EQ(found, "Permission denied") << what;
    }
  }
  for (const std::string& what :
       {std::string("tcp "), std::string("udp "), std::string("unix "), std::string("connect "),
        std::string("exec "), "signal " + std::to_string(::getpid()),
        "chmod " + (folder / "file").string()}) {
    EXPECT_EQ(outcome(what), "Operation not permitted") << what;
  }
}

TEST(SandboxProgram, MissingProgramIsAnError) {
  Sandbox sandbox("/nonexistent/tt-worker");
  const auto result = sandbox.run("echo", "");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::Unavailable);
  EXPECT_NE(result.error().reason.find("/nonexistent/tt-worker"), std::string::npos);
}

TEST(SandboxProgram, ProgramThatServesNoJobsIsAnError) {
  Sandbox sandbox("/bin/true");
  EXPECT_EQ(sandbox.run("echo", "").error().kind, Kind::Unavailable);
}

}  // namespace
}  // namespace tt
