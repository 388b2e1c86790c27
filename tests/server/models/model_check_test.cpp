// Damaged models are first loaded in a child process, so that a crash ends only the child.
// Every model that passes there also loads here.
#include "tracer/engine/model_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <mutex>
#include <print>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/models/damaged_model.h"
#include "tests/support/fair_clock.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/engine.h"
#include "tracer/engine/repack_samples.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/modelgen/model_writer.h"

namespace tt {
namespace {

using namespace std::chrono_literals;

using test::contents;
using test::ValidModel;

// The server's options, with a small context.
ContextOptions small_context() {
  ContextOptions context;
  context.context = 256;
  context.batch = context.ubatch = 128;
  context.threads = 1;
  return context;
}

std::expected<void, std::string> check(const std::filesystem::path& model,
                                       std::chrono::milliseconds timeout = 120s) {
  static Sandbox sandbox(kTestPaths.worker);
  ModelCheck check(sandbox, {.path = model}, small_context(), timeout);
  if (auto loaded = check.loaded(); !loaded) return loaded;
  return check.evaluated();
}

class DamagedModel : public ::testing::TestWithParam<ValidModel::Kind> {};

// 1000 mutations in total.
TEST_P(DamagedModel, IsLoadedOrRejectedWithoutCrashingTheParent) {
  const std::uint32_t kMutations = GetParam() == ValidModel::Kind::Dense ? 200 : 150;
  const test::TempFolder folder;
  const ValidModel valid(GetParam());
  ASSERT_TRUE(check(valid.write(folder.path(), "valid")).has_value());

  std::atomic<std::uint32_t> next = 0;
  std::mutex mutex;
  std::vector<std::filesystem::path> passed;
  std::uint32_t rejected = 0, died = 0, late = 0;
  std::map<std::string, int> deaths;
  const auto work = [&] {
    for (std::uint32_t seed = 0; (seed = next++) < kMutations;) {
      const std::string stem = std::format("m{}", seed);
      const auto path = valid.write_mutated(folder.path(), stem, seed);
      const auto result = check(path, 120s);
      const std::scoped_lock lock(mutex);
      if (result) {
        passed.push_back(path);
        continue;
      }
      valid.remove(folder.path(), stem);
      EXPECT_NE(result.error().find(stem), std::string::npos) << result.error();
      if (result.error().find("crashed") != std::string::npos) {
        ++died;
        ++deaths[result.error().substr(result.error().find('('))];
      } else if (result.error().find("took more than") != std::string::npos) {
        ++late;
      } else {
        ++rejected;
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
      workers.emplace_back(work);
  }
  std::println("{} mutations: {} load, {} are rejected, {} crashed the child, {} timed out",
               kMutations, passed.size(), rejected, died, late);
  for (const auto& [last, count] : deaths) std::println("  {} x {}", count, last.substr(0, 150));
  EXPECT_EQ(passed.size() + rejected + died + late, kMutations);
  EXPECT_GT(passed.size(), kMutations / 10);
  EXPECT_GT(rejected, kMutations / 4);
  EXPECT_EQ(late, 0u);

  // Models that passed load here with the server's default options without a crash.
  load_backends({});
  for (const auto& path : passed) {
    ModelOptions model;
    model.path = path;
    const auto engine = Engine::load(model, small_context(), {});
    EXPECT_TRUE(engine.has_value()) << path << ": " << engine.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Mutations, DamagedModel, ::testing::ValuesIn(ValidModel::kKinds),
                         [](const auto& made) { return test::name_of(made.param); });

TEST(ModelCheck, ReportsTheProblem) {
  const test::TempFolder folder;
  const std::string whole = contents(kTestPaths.bundled_model);
  struct Case {
    const char* name;
    std::string bytes, says;
  };
  const Case cases[] = {
      {"empty.gguf", "", "GGUF"},
      {"text.gguf", "hello", "not a GGUF file"},
      {"cut.gguf", whole.substr(0, 4000), "truncated"},
      {"half.gguf", whole.substr(0, whole.size() / 2), "half.gguf"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto path = folder.path() / c.name;
    std::ofstream(path, std::ios::binary) << c.bytes;
    const auto result = check(path);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().find(c.says), std::string::npos) << result.error();
    EXPECT_NE(result.error().find(c.name), std::string::npos) << result.error();
  }
  EXPECT_FALSE(check(folder.path() / "absent.gguf").has_value());
  EXPECT_TRUE(check(kTestPaths.bundled_model).has_value());
}

TEST(ModelCheck, MissingOrSlowWorkerIsAnError) {
  const auto run = [](const std::filesystem::path& worker, const std::stop_token& stop = {}) {
    Sandbox sandbox(worker);
    ModelCheck check(sandbox, {.path = kTestPaths.bundled_model}, small_context(), 60s, stop);
    auto loaded = check.loaded();
    EXPECT_FALSE(check.is_refused()) << "not because of the file";
    return loaded;
  };
  const auto missing = run("/nonexistent/worker");
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().find("/nonexistent/worker"), std::string::npos);

  // Cancelled while it starts.
  const test::TempFolder folder;
  const auto slow = folder / "slow-worker";
  std::ofstream(slow) << std::format("#!/bin/sh\ntouch {} && exec sleep 1000\n",
                                     (folder / "started").string());
  std::filesystem::permissions(slow, std::filesystem::perms::owner_all);
  std::stop_source stop;
  const std::jthread canceller([&] {
    EXPECT_TRUE(test::wait_until([&] { return std::filesystem::exists(folder / "started"); }));
    stop.request_stop();
  });
  const auto began = test::FairClock::now();
  EXPECT_FALSE(run(slow, stop.get_token()).has_value());
  EXPECT_LT(test::FairClock::now() - began, 10s);
}

// The tokenizer lacks bytes of the text; llama.cpp's then appends tokens without end.
TEST(ModelCheck, TokenizerThatDoesNotEndIsRejectedWithLittleMemory) {
  const test::TempFolder folder;
  const auto model = test::with_changes(
      kTestPaths.bundled_model, folder / "endless.gguf",
      [](gguf_context* file) { gguf_set_val_str(file, "tokenizer.ggml.model", "rwkv"); });
  const auto rejected = check(model);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_TRUE(rejected.error().contains("its tokenizer needs more than 256 MiB"))
      << rejected.error();
}

TEST(ModelCheck, RepacksOnlySamples) {
  load_backends({});
  const test::TempFolder folder;
  for (const auto& [shape, quant] :
       {std::pair{"small", "q4_0"}, {"small", "q4_k_m"}, {"moe", "q4_0"}}) {
    SCOPED_TRACE(std::format("{} {}", shape, quant));
    modelgen::ModelSpec spec;
    spec.shape = shape;
    spec.quant = quant;
    const auto made =
        modelgen::write_model(spec, folder / std::format("{}-{}.gguf", shape, quant).c_str());
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const auto index = GgufIndex::open(made->files.front());
    ASSERT_TRUE(index.has_value());
    const RepackSamples samples(*index);
    std::uint64_t all = 0, repacked = 0;
    for (const GgufTensor& tensor : index->tensors()) {
      all += tensor.file.length;
      if (std::ranges::contains(samples.names(), tensor.name)) repacked += tensor.file.length;
    }
    EXPECT_LT(repacked, all / 10);
    // Of processors that repack this type.
    std::println("{} of {} weights, {} of {} bytes", samples.names().size(),
                 index->tensors().size(), repacked, all);
    EXPECT_TRUE(check(made->files.front()).has_value());
  }
}

TEST(ModelCheck, OnlyAFaultOfTheFileIsARefusal) {
  const test::TempFolder folder;
  Sandbox sandbox(kTestPaths.worker);
  const auto is_refused = [&](const std::filesystem::path& model, const ContextOptions& context,
                              std::chrono::milliseconds timeout) {
    ModelCheck check(sandbox, {.path = model}, context, timeout);
    EXPECT_FALSE(check.loaded() && check.evaluated());
    return check.is_refused();
  };
  const auto bad =
      test::with_changes(kTestPaths.bundled_model, folder / "key.gguf",
                         [](gguf_context* file) { gguf_remove_key(file, "tokenizer.ggml.model"); });
  EXPECT_TRUE(is_refused(bad, small_context(), 60s));
  EXPECT_FALSE(is_refused(kTestPaths.bundled_model, small_context(), 1ms)) << "too slow";
  ContextOptions large = small_context();
  large.context = kMaxContext;
  EXPECT_FALSE(is_refused(kTestPaths.bundled_model, large, 60s)) << "too little memory";
}

TEST(ModelCheck, EnforcesTheTimeLimit) {
  const auto late = check(kTestPaths.bundled_model, 1ms);
  ASSERT_FALSE(late.has_value());
  EXPECT_NE(late.error().find("took more than 0.0 s"), std::string::npos) << late.error();
}

}  // namespace
}  // namespace tt
