// The memory manager below a recorded cgroup v2 whose limits change, on a machine that may have
// only v1: the files are those of the kernel in a folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/sessions/graph_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/memory/memory_manager.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
using MemoryPhase = MemoryState::Phase;

constexpr std::uint64_t kMebibyte = 1U << 20;

// A model file on a disk (pages in a tmpfs cannot be dropped), mapped.
class MappedWeights {
 public:
  explicit MappedWeights(std::uint64_t bytes) : bytes_(bytes) {
    std::ofstream(path_) << std::string(bytes, 'w');
    const int file = ::open(path_.c_str(), O_RDONLY);
    ::fsync(file);
    data_ = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
  }
  ~MappedWeights() {
    ::munmap(data_, bytes_);
    fs::remove(path_);
  }
  MappedWeights(const MappedWeights&) = delete;
  MappedWeights& operator=(const MappedWeights&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  const fs::path& path() const { return path_; }

 private:
  const std::uint64_t bytes_;
  const fs::path path_ = fs::current_path() / ("weights_" + std::to_string(::getpid()));
  void* data_ = MAP_FAILED;
};

// The files of a group, replaced as a whole: they are read at any time.
class RecordedGroup {
 public:
  RecordedGroup() {
    write("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 8388608 kB\nMemAvailable: 8388608 kB\n");
    write("proc/self/status", "CapEff:\t000001ffffffffff\n");
    write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    write("proc/self/cgroup", "0::/run.scope\n");
    set("memory.max", 64 * kMebibyte);
    set("memory.current", 10 * kMebibyte);
    write(group_ + "memory.high", "max\n");
    write(group_ + "memory.stat", "anon 8388608\nkernel 0\nshmem 0\n");
  }
  const fs::path& root() const { return root_.path(); }
  void set(const char* file, std::uint64_t bytes) {
    write(group_ + file, std::to_string(bytes) + "\n");
  }

 private:
  void write(const fs::path& name, const std::string& text) {
    const fs::path path = root_.path() / name, draft = root_.path() / "draft";
    fs::create_directories(path.parent_path());
    std::ofstream(draft) << text;
    fs::rename(draft, path);
  }
  const TempFolder root_;
  const std::string group_ = "sys/fs/cgroup/run.scope/";
};

TEST(RecordedLimit, PlanFollowsMemoryHighAndStopsWhereTooLittleIsLeft) {
  // 12 weights of 2 MiB, one op each.
  constexpr std::uint64_t kWeight = 2 * kMebibyte;
  const MappedWeights weights(12 * kWeight);
  GraphMaker maker;
  auto values = maker.input("values", {1024}, kF32);
  std::vector<std::uint64_t> addresses = {4096};
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto weight = maker.weight("weight", {1024, 512});
    Tensor& tensor = maker.graph.tensors[weight.v];
    tensor.source = Source::Disk;
    tensor.file = {.file = 0, .offset = i * kWeight, .length = kWeight};
    values = maker.node("MUL_MAT", "out", {512}, {weight, values});
    addresses.push_back(weights.address() + i * kWeight);
    addresses.push_back(8192);
  }
  auto graph = std::make_shared<KnownGraph>();
  graph->accesses = accesses_of(maker.graph);
  graph->graph = maker.graph;

  RecordedGroup group;
  const std::vector<ModelFile> files = {
      {.path = weights.path().string(), .size = 12 * kWeight, .mtime_ns = 0, .header_hash = ""}};
  const std::atomic<std::uint32_t> ops_run{0};
  MemoryManager manager(
      {.files = files, .ops_run = ops_run, .unavailable = "", .system_root = group.root()});
  manager.set({.budget = MemoryOptions::kAuto});
  manager.end_step({.tokens = 1,
                    .complete = true,
                    .ns = 1'000'000,
                    .graph = graph,
                    .addresses = std::make_shared<const std::vector<std::uint64_t>>(addresses)});
  const auto state_when = [&](auto condition) {
    EXPECT_TRUE(wait_until([&] { return condition(manager.state()); }));
    return manager.state();
  };
  const MemoryState fits =
      state_when([](const MemoryState& state) { return state.phase == MemoryPhase::Fits; });
  EXPECT_EQ(fits.limit_source, "cgroup v2 /run.scope");
  // 64 MiB without 12 of reserve and what is charged for others.
  EXPECT_EQ(fits.budget, 42 * kMebibyte);

  group.set("memory.high", 40 * kMebibyte);
  const MemoryState acts = state_when([](const MemoryState& state) {
    return state.phase == MemoryPhase::Active && state.reductions == 1 &&
           state.resident > 8 * kMebibyte;
  });
  EXPECT_EQ(acts.budget, 18 * kMebibyte);
  EXPECT_EQ(acts.limit_source, "cgroup v2 /run.scope (memory.high)");
  EXPECT_TRUE(
      acts.message.contains("below the limit of 40 MiB (cgroup v2 /run.scope (memory.high))"))
      << acts.message;
  EXPECT_LE(acts.pinned + acts.window, acts.budget);

  group.set("memory.high", 12 * kMebibyte);
  const MemoryState none = state_when([](const MemoryState& state) {
    return state.phase == MemoryPhase::Unavailable && state.locked == 0 && state.resident == 0;
  });
  EXPECT_TRUE(none.message.contains("too few for this model; at least 8 MiB are needed"))
      << none.message;
  EXPECT_EQ(none.pinned, 0U);
}

}  // namespace
}  // namespace tt::test
