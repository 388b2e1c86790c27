// What a session says about the loading of its model and about the memory of its context, against
// the clock, the file, the cache's shape and llama.cpp's own log.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tracer/engine/host_facts.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

std::uint64_t fact_of(const SessionInfo& info, std::string_view name) {
  const auto number = info.fact_number(name);
  EXPECT_TRUE(number.has_value()) << name;
  return number.value_or(0);
}

// The file is not in the page cache. In the build folder, as temporary files may be in memory.
struct UnreadModel {
  fs::path path = fs::current_path() / ("unread_" + std::to_string(getpid()));
  UnreadModel() {
    fs::copy_file(generated_model({.shape = "small"}), path);
    const int fd = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(fsync(fd), 0);
    EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
  }
  ~UnreadModel() { fs::remove(path); }
};

TEST(LoadFacts, TimeReadsAndFaultsOfLoading) {
  const UnreadModel file;
  ModelOptions options;
  options.mmap = false;  // every weight is read from the file, once
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto began = std::chrono::steady_clock::now();
  TracedModel model(file.path, TracedModel::small_context(), options);
  const auto took = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
  getrusage(RUSAGE_SELF, &after);
  const SessionInfo info = model.run(greedy_tokens(9, 2)).reader().info().value();

  std::uint64_t parts = 0;
  for (const char* part : {"index", "weights", "prepare", "context", "vocabulary"})
    parts += fact_of(info, std::string("load.") + part + "_ns");
  EXPECT_EQ(parts, fact_of(info, "load.duration_ns")) << "they follow each other";
  EXPECT_LE(parts, took);
  // Computing time: beside other programs, what this test does besides may take longer than a load.
  const auto computed = [](const rusage& at) {
    return static_cast<std::uint64_t>(at.ru_utime.tv_sec + at.ru_stime.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(at.ru_utime.tv_usec + at.ru_stime.tv_usec) * 1'000;
  };
  EXPECT_GE(parts, (computed(after) - computed(before)) / 2) << "the rest is this test's own";
  const std::uint64_t bytes = fs::file_size(file.path);
  EXPECT_GE(fact_of(info, "load.disk_read_bytes"), bytes / 10 * 9);
  EXPECT_LE(fact_of(info, "load.disk_read_bytes"),
            512 * static_cast<std::uint64_t>(after.ru_inblock - before.ru_inblock));
  EXPECT_LE(fact_of(info, "load.minor_faults"),
            static_cast<std::uint64_t>(after.ru_minflt - before.ru_minflt));
  EXPECT_LE(fact_of(info, "load.major_faults"),
            static_cast<std::uint64_t>(after.ru_majflt - before.ru_majflt));
}

// The sum of the sizes, in MiB, in log lines such as "CPU KV buffer size = 4.00 MiB".
double logged_mib(const std::string& log, const char* what) {
  const std::regex line(std::string(what) + R"( buffer size = +([0-9.]+) MiB)");
  double sum = 0;
  for (std::sregex_iterator at(log.begin(), log.end(), line), end; at != end; ++at)
    sum += std::stod((*at)[1]);
  return sum;
}

TEST(LoadFacts, SizesOfTheContextAreThoseOfTheLog) {
  ensure_backends_loaded();
  ggml_log_callback before = nullptr;
  void* data = nullptr;
  llama_log_get(&before, &data);
  std::string log;
  llama_log_set(
      [](ggml_log_level, const char* text, void* to) { *static_cast<std::string*>(to) += text; },
      &log);
  TracedModel model(generated_model({.shape = "small"}));
  llama_log_set(before, data);
  const SessionInfo info = model.run(greedy_tokens(100, 2)).reader().info().value();

  constexpr double kMib = 1 << 20, kRounded = 0.006 * kMib;
  const auto kv = static_cast<double>(fact_of(info, "result.kv_bytes"));
  EXPECT_NEAR(kv, logged_mib(log, "KV") * kMib, kRounded) << log;
  const std::uint64_t row = info.n_embd / info.n_heads * info.n_heads_kv;
  constexpr std::uint64_t kCells = 512, kHalf = 2;
  EXPECT_EQ(fact_of(info, "result.kv_bytes"), 2 * info.n_layers * row * kCells * kHalf);
  const auto compute = static_cast<double>(fact_of(info, "result.compute_bytes"));
  EXPECT_NEAR(compute, logged_mib(log, "compute") * kMib, kRounded) << log;
  const auto logits = static_cast<double>(fact_of(info, "result.logits_bytes"));
  EXPECT_NEAR(logits, logged_mib(log, "output") * kMib, kRounded) << log;
}

// A server answers requests while it loads a model. llama_print_system_info() has one string for
// all threads, which the first calls of a process enlarge: freed twice in some of these processes,
// if they do so at once.
TEST(HostFacts, AreTheSameInAllThreadsOfANewProcess) {
  ensure_backends_loaded();
  constexpr int kProcesses = 200, kThreads = 4;
  int failed = 0;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::array<decltype(host_facts({})), kThreads> found;
      std::barrier together(kThreads);
      {
        std::vector<std::jthread> threads;
        for (auto& one : found)
          threads.emplace_back([&] {
            together.arrive_and_wait();
            one = host_facts({});
          });
      }
      ::_exit(std::ranges::all_of(found, [&](const auto& one) { return one == found[0]; }) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    failed += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  }
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace tt::test
