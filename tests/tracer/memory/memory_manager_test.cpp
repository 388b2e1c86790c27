// The engine with a memory budget: what is in memory, and that the output stays the same.
#include "tracer/memory/memory_manager.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/child_process.h"
#include "tests/support/models/kept_model.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/slow_disk.h"
#include "tests/support/wait.h"
#include "tracer/engine/host_facts.h"
#include "tracer/memory/limits/memory_group.h"
#include "tracer/memory/limits/memory_limit.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
using MemoryPhase = MemoryState::Phase;

constexpr std::uint64_t kMega = 1U << 20;

// 48 MiB of weights, of which 36 MiB are read whole for every token.
modelgen::ModelSpec dense_spec() {
  return {.shape = "small", .dims = {.layers = 4, .embd = 1024, .heads = 8, .ff = 4096}};
}

// A model in a folder that is on a disk: pages of a file in a tmpfs cannot be dropped.
class DiskModels {
 public:
  ~DiskModels() { fs::remove_all(folder_); }
  fs::path write(const modelgen::ModelSpec& spec, const std::string& name) {
    fs::create_directories(folder_);
    const auto files = write_kept_model(spec, folder_ / (name + ".gguf"));
    if (!files) throw std::runtime_error(files.error().message);
    for (const fs::path& file : *files) {
      const int fd = ::open(file.c_str(), O_RDONLY);
      ::fsync(fd);
      ::close(fd);
    }
    return files->front();
  }

 private:
  const fs::path folder_ = fs::current_path() / ("memory_manager_" + std::to_string(::getpid()));
};

MemoryOptions budget_of(std::uint64_t bytes, bool pin = true, bool prefetch = true) {
  return {.budget = bytes, .pin = pin, .prefetch = prefetch};
}

ModelOptions with_memory(const MemoryOptions& memory) {
  ModelOptions options;
  options.repack = false;
  options.memory = memory;
  return options;
}

std::vector<std::int32_t> ids_of(const TracedModel::Run& run) {
  EXPECT_TRUE(run.result.error.empty()) << run.result.error;
  std::vector<std::int32_t> ids;
  for (const Token& token : run.captured.tokens) ids.push_back(token.id);
  return ids;
}

// Waits until the state is as expected; prints it otherwise.
template <class Condition>
MemoryState state_when(Engine& engine, Condition condition) {
  const bool reached = wait_until([&] { return condition(engine.memory_state()); });
  const MemoryState state = engine.memory_state();
  EXPECT_TRUE(reached) << to_text(state.phase) << ": " << state.message << " pinned "
                       << state.pinned << " locked " << state.locked << " resident "
                       << state.resident;
  return state;
}

// Pages of the range that are in memory. Root sees it also of files that it does not own.
std::uint64_t resident_pages(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  const auto size = fs::file_size(file);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> pages((size + 4095) / 4096);
  EXPECT_EQ(::mincore(at, size, pages.data()), 0);
  ::munmap(at, size);
  ::close(fd);
  std::uint64_t count = 0;
  for (const unsigned char page : pages) count += page & 1U;
  return count;
}

struct ModelShape {
  const char* name;
  modelgen::ModelSpec spec;
};
// 11 MiB of weights each, of which a budget of 8 MiB does not hold all.
modelgen::ModelSpec tiny_spec() {
  return {.shape = "small", .dims = {.layers = 6, .embd = 512, .heads = 8, .ff = 1536}};
}
std::vector<ModelShape> shapes() {
  std::vector<ModelShape> shapes = {
      {.name = "dense", .spec = tiny_spec()},
      {.name = "tied", .spec = tiny_spec()},
      {.name = "split", .spec = tiny_spec()},
      {.name = "moe", .spec = {.shape = "moe", .dims = {.layers = 6}}},
      {.name = "moe_split", .spec = {.shape = "moe", .dims = {.layers = 6}, .splits = 2}}};
  shapes[1].spec.tied = true;
  shapes[2].spec.splits = 3;
  return shapes;
}

// 50 prompts of 1 to 7 tokens.
std::vector<GenerationRequest> some_prompts() {
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 21; ++i) {  // each length of 1 to 7 tokens, three times
    std::vector<std::int32_t> ids;
    for (int token = 0; token <= i % 7; ++token) ids.push_back(1 + (i * 5 + token * 11) % 60);
    GenerationRequest request = greedy_tokens(1, i < 3 ? 12 : 2);
    request.prompt = ids;
    // Both ways of observing graphs.
    request.level = i % 2 == 0 ? Level::Off : Level::Detailed;
    requests.push_back(std::move(request));
  }
  return requests;
}

class EveryStrategy : public ::testing::TestWithParam<ModelShape> {};

TEST_P(EveryStrategy, GivesTheSameOutput) {
  DiskModels models;
  const fs::path file = models.write(GetParam().spec, GetParam().name);
  TracedModel model(file, TracedModel::small_context(), with_memory({}));
  const auto requests = some_prompts();
  std::vector<std::vector<std::int32_t>> expected;
  for (const auto& request : requests) expected.push_back(ids_of(model.run(request)));
  for (const auto& [pin, prefetch] : {std::pair(true, true), {true, false}, {false, true}}) {
    SCOPED_TRACE(pin ? prefetch ? "both" : "pin" : "prefetch");
    model.engine().set_memory(budget_of(8 * kMega, pin, prefetch));
    state_when(model.engine(), [](const MemoryState& s) { return s.phase == MemoryPhase::Active; });
    for (std::size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(ids_of(model.run(requests[i])), expected[i]) << i;
    const MemoryState state = model.engine().memory_state();
    EXPECT_EQ(state.phase, MemoryPhase::Active) << state.message;
    EXPECT_GT(state.bytes_read, 0U);
    model.engine().set_memory({});
    state_when(model.engine(), [](const MemoryState& s) { return s.phase == MemoryPhase::Off; });
  }
}
INSTANTIATE_TEST_SUITE_P(MemoryManager, EveryStrategy, ::testing::ValuesIn(shapes()),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(MemoryManager, StaysWithinItsBudget) {
  DiskModels models;
  const fs::path file = models.write(dense_spec(), "dense");
  TracedModel model(file, TracedModel::small_context(), with_memory(budget_of(20 * kMega)));
  EXPECT_EQ(model.engine().memory_state().phase, MemoryPhase::Learning);
  const std::uint64_t locked_before = locked_bytes();
  ids_of(model.run(greedy_tokens(3, 8)));
  const MemoryState state = state_when(model.engine(), [](const MemoryState& s) {
    return s.phase == MemoryPhase::Active && s.locked == s.pinned && s.tokens_per_second > 0;
  });
  EXPECT_GT(state.pinned, 10 * kMega);
  EXPECT_LE(state.pinned + state.window, 20 * kMega);
  EXPECT_LE(state.resident, 20 * kMega);
  EXPECT_GT(state.streamed, 10 * kMega);
  EXPECT_GT(state.bytes_read, state.streamed);
  // Pages that two weights share are counted for both.
  EXPECT_LE(locked_bytes() - locked_before, state.locked);
  EXPECT_GT(locked_bytes() - locked_before + 64 * 4096, state.locked);
  // The budget, embeddings that were looked up, and pages that two weights share.
  EXPECT_TRUE(wait_until([&] { return resident_pages(file) * 4096 < 22 * kMega; }))
      << resident_pages(file);

  model.engine().set_memory({});
  state_when(model.engine(), [](const MemoryState& s) { return s.phase == MemoryPhase::Off; });
  EXPECT_EQ(locked_bytes(), locked_before);
}

// A plan that has seen no routing takes it to be uniform. With a router that prefers some experts,
// the prediction follows what is read.
TEST(MemoryManager, PredictionFollowsTheRouting) {
  DiskModels models;
  const fs::path file = models.write(
      {.shape = "moe", .dims = {.layers = 6, .experts = 16, .experts_used = 2}, .router_skew = 8},
      "skewed");
  TracedModel model(file, TracedModel::small_context(), with_memory(budget_of(9 * kMega)));
  // The worker learns late if it gets little time: as many tokens as it needs.
  std::uint32_t tokens = 0;
  const auto run_until_choices = [&](std::uint64_t choices) {
    MemoryState state;
    do {
      ids_of(model.run(greedy_tokens(3, 60)));
      tokens += 60;
      state = model.engine().memory_state();
    } while (!HasFailure() && (state.phase != MemoryPhase::Active ||
                               state.expert_hits + state.expert_misses < choices));
    return state;
  };
  MemoryState before, after = run_until_choices(600);
  double read = 0;
  // A worker without a processor leaves reads to page faults, which `read` does not count.
  for (int window = 0; window < 10 && !HasFailure(); ++window) {
    before = after;
    tokens = 0;
    after = run_until_choices(before.expert_hits + before.expert_misses + 600);
    read = static_cast<double>(after.bytes_read - before.bytes_read) / tokens;
    if (std::abs(after.predicted_bytes_per_token - read) < 0.3 * read) break;
  }
  EXPECT_NEAR(after.predicted_bytes_per_token, read, 0.3 * read);
  const double kept = static_cast<double>(after.expert_cache) / static_cast<double>(after.experts);
  const double uniform = (1 - kept) * static_cast<double>(after.experts) * 2 / 16;
  EXPECT_LT(after.predicted_bytes_per_token, 0.7 * uniform);
}

TEST(MemoryManager, LargeBudgetDoesNothing) {
  TracedModel model(generated_model({.shape = "small"}), TracedModel::small_context(),
                    with_memory(budget_of(MemoryOptions::kAuto)));
  ids_of(model.run(greedy_tokens(3, 3)));
  const MemoryState state =
      state_when(model.engine(), [](const MemoryState& s) { return s.phase == MemoryPhase::Fits; });
  EXPECT_NE(state.message.find("nothing to do"), std::string::npos) << state.message;
  EXPECT_EQ(state.locked, 0U);
  EXPECT_EQ(state.bytes_read, 0U);
}

TEST(MemoryManager, BudgetSwitchesRepackingOff) {
  ModelOptions options;
  options.memory = budget_of(MemoryOptions::kAuto);
  TracedModel model(generated_model({.shape = "small"}), TracedModel::small_context(), options);
  ids_of(model.run(greedy_tokens(3, 3)));
  EXPECT_NE(model.engine().memory_state().phase, MemoryPhase::Unavailable);
}

TEST(MemoryManager, SaysWhyItCannotActOnRepackedOrCopiedWeights) {
  TracedModel repacked(generated_model({.shape = "small"}));
  repacked.engine().set_memory(budget_of(10 * kMega));
  EXPECT_EQ(repacked.engine().memory_state().phase, MemoryPhase::Unavailable);
  EXPECT_NE(repacked.engine().memory_state().message.find("--no-repack"), std::string::npos);
  TracedModel copied(generated_model({.shape = "small"}), TracedModel::small_context(),
                     {.mmap = false, .repack = false});
  copied.engine().set_memory(budget_of(10 * kMega));
  EXPECT_EQ(copied.engine().memory_state().phase, MemoryPhase::Unavailable);
  EXPECT_NE(copied.engine().memory_state().message.find("--no-mmap"), std::string::npos);
}

// In a process of its own, because RLIMIT_MEMLOCK binds only without capabilities.
TEST(MemoryManager, KeepsWarmWhatItMayNotLock) {
  DiskModels models;
  const fs::path file = models.write(dense_spec(), "dense");
  ChildProcess child([&] {
    const rlimit none{.rlim_cur = kMega, .rlim_max = kMega};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (::getuid() == 0 && ::setuid(65534) != 0))
      return 2;
    ensure_backends_loaded();
    Sandbox sandbox(kTestPaths.worker);
    ModelOptions options = with_memory(budget_of(20 * kMega));
    options.path = file;
    auto engine = Engine::load(options, TracedModel::small_context(), {}, &sandbox);
    if (!engine) return 3;
    CapturedOutput captured;
    GenerationRequest request = greedy_tokens(3, 8);
    request.level = Level::Off;
    if (!(*engine)->generate(request, nullptr, captured).error.empty()) return 4;
    const bool warm = wait_until([&] {
      const MemoryState state = (*engine)->memory_state();
      return state.phase == MemoryPhase::Active && state.locked < 2 * kMega &&
             state.resident >= state.pinned && state.message.contains("kept warm") &&
             state.message.contains("ulimit -l");
    });
    if (!warm) std::fprintf(stderr, "%s\n", (*engine)->memory_state().message.c_str());
    return warm && resident_pages(file) * 4096 >= (*engine)->memory_state().pinned ? 0 : 5;
  });
  EXPECT_EQ(child.wait(), 0);
}

// The whole test process is in the group; the budget follows its limit.
TEST(MemoryManager, FollowsTheLimitOfItsGroup) {
  std::string problem;
  DiskModels models;
  const fs::path file = models.write(dense_spec(), "dense");
  TracedModel model(file, TracedModel::small_context(), with_memory({}));
  const auto expected = ids_of(model.run(greedy_tokens(3, 6)));
  const auto group = MemoryGroup::make(200 * kMega, problem);
  // Only root and owners of a delegated cgroup may make one; memory_limit_test has recorded
  // folders.
  if (!group) GTEST_SKIP() << problem;
  ASSERT_TRUE(group->add(::getpid()));
  TracedModel limited(file, TracedModel::small_context(),
                      with_memory(budget_of(MemoryOptions::kAuto)));
  EXPECT_EQ(ids_of(limited.run(greedy_tokens(3, 6))), expected);
  const MemoryState fits = state_when(
      limited.engine(), [](const MemoryState& s) { return s.phase == MemoryPhase::Fits; });
  EXPECT_TRUE(fits.limit_source.starts_with("cgroup")) << fits.limit_source;
  EXPECT_EQ(fits.limit, 200 * kMega);

  // Less than the weights above what cannot be given back.
  ASSERT_TRUE(group->set_limit(MemoryLimitReader().read().fixed + 36 * kMega));
  EXPECT_EQ(ids_of(limited.run(greedy_tokens(3, 6))), expected);
  const MemoryState less = state_when(limited.engine(), [](const MemoryState& s) {
    return s.phase == MemoryPhase::Active || s.phase == MemoryPhase::Unavailable;
  });
  EXPECT_NE(less.message.find("memory is needed elsewhere"), std::string::npos) << less.message;
  EXPECT_LT(less.budget, fits.budget);
  EXPECT_EQ(ids_of(limited.run(greedy_tokens(3, 6))), expected);
}

// While a request runs, the limit of the group becomes smaller than what is locked.
TEST(MemoryManager, LimitTightensWhileARequestRuns) {
  std::string problem;
  DiskModels models;
  const fs::path file = models.write(dense_spec(), "dense");
  const auto group = MemoryGroup::make(400 * kMega, problem);
  // As above: only root and owners of a delegated cgroup may make one.
  if (!group) GTEST_SKIP() << problem;
  // Before the model is loaded: the groups of the process are looked up then.
  ASSERT_TRUE(group->add(::getpid()));
  TracedModel model(file, TracedModel::small_context(), with_memory({}));
  const auto expected = ids_of(model.run(greedy_tokens(3, 60)));
  model.engine().set_memory(budget_of(32 * kMega));
  // Pinned by the end of the first run.
  EXPECT_EQ(ids_of(model.run(greedy_tokens(3, 60))), expected);
  const MemoryState before = state_when(model.engine(), [](const MemoryState& s) {
    return s.phase == MemoryPhase::Active && s.locked == s.pinned && s.pinned > 20 * kMega;
  });
  const auto run = model.run(greedy_tokens(3, 60), [&](std::uint32_t generated) {
    if (generated != 5) return;
    // The kernel may refuse it while pages are locked; the plan then gives them back at the next
    // reading of the limit, so it is set again.
    const std::uint64_t limit = MemoryLimitReader().read().fixed + 30 * kMega;
    EXPECT_TRUE(wait_until([&] { return group->set_limit(limit); }));
    state_when(model.engine(), [](const MemoryState& s) { return s.reductions > 0; });
  });
  EXPECT_EQ(ids_of(run), expected);
  const MemoryState after = state_when(model.engine(), [&](const MemoryState& s) {
    return s.budget < before.budget && s.locked < before.locked;
  });
  EXPECT_LT(after.locked, before.locked);
  EXPECT_NE(after.message.find("memory is needed elsewhere"), std::string::npos) << after.message;
}

// The disk is limited to 20 MB/s (blkio, cgroup v1) while the model is read ahead.
TEST(MemoryManager, SlowDiskOnlyTakesTime) {
  DiskModels models;
  const fs::path file = models.write(dense_spec(), "dense");
  TracedModel model(file, TracedModel::small_context(), with_memory({}));
  const auto expected = ids_of(model.run(greedy_tokens(3, 4)));
  std::string problem;
  const auto slow = SlowDisk::make(file, 20'000'000, problem);
  // Only root may; the speed of the disk is measured in any case (DiskSpeed).
  if (!slow) GTEST_SKIP() << problem;
  model.engine().set_memory(budget_of(30 * kMega));
  state_when(model.engine(), [](const MemoryState& s) { return s.phase == MemoryPhase::Active; });
  EXPECT_EQ(ids_of(model.run(greedy_tokens(3, 4))), expected);
  const MemoryState state =
      state_when(model.engine(), [](const MemoryState& s) { return s.disk_bytes_per_second > 0; });
  EXPECT_LT(state.disk_bytes_per_second, 60e6);
  EXPECT_GT(state.late_ranges, 0U) << "the ops had to wait";
}

// Changed while a step runs, from another thread.
TEST(MemoryManager, OptionsChangeAtAnyTime) {
  DiskModels models;
  const fs::path file = models.write(dense_spec(), "dense");
  TracedModel model(file, TracedModel::small_context(), with_memory({}));
  const auto expected = ids_of(model.run(greedy_tokens(3, 20)));
  std::jthread changer([&](const std::stop_token& stop) {
    for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
      model.engine().set_memory(
          i % 4 == 3 ? MemoryOptions{} : budget_of((10 + 5 * (i % 5)) * kMega, i % 3 > 0, i % 2));
      // A random moment: there is no condition to wait for.
      std::this_thread::sleep_for(std::chrono::milliseconds(7 * (i % 4)));
    }
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ids_of(model.run(greedy_tokens(3, 20))), expected);
}

}  // namespace
}  // namespace tt::test
