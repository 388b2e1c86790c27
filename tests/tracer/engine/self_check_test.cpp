// The gate for untested libllama versions: version messages, and a self-check that detects each
// way in which the library's callbacks can deviate.
#include "tracer/engine/self_check.h"

#include <ggml-backend.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <format>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tests/tracer/engine/fake_library.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/generation_queue.h"

namespace tt::test {
namespace {

// ---------------------------------------------------------------- backends

// As in ggml-backend-impl.h, which is not installed.
struct Registry {
  int api_version;
  const char* (*name)(ggml_backend_reg_t);
  std::size_t (*devices)(ggml_backend_reg_t);
  ggml_backend_dev_t (*device)(ggml_backend_reg_t, std::size_t);
  void* (*function)(ggml_backend_reg_t, const char*);
  void* context;
};

TEST(Backends, UnloadsBlasAndKeepsOthers) {
  static Registry blas{
      .api_version = 2,
      .name = [](ggml_backend_reg_t) { return "BLAS"; },
      .devices = [](ggml_backend_reg_t) { return std::size_t{0}; },
      .device = [](ggml_backend_reg_t, std::size_t) -> ggml_backend_dev_t { return nullptr; },
      .function = [](ggml_backend_reg_t, const char*) -> void* { return nullptr; },
      .context = nullptr};
  ggml_backend_register(reinterpret_cast<ggml_backend_reg_t>(&blas));
  ASSERT_TRUE(std::ranges::contains(backend_names(), "BLAS"));
  load_backends({});
  EXPECT_FALSE(std::ranges::contains(backend_names(), "BLAS"));
  EXPECT_TRUE(std::ranges::contains(backend_names(), "CPU"));
}

// ---------------------------------------------------------------- versions

TEST(VersionGate, NamesVersionsOfDocuments) {
  configure_library({});
  std::ifstream in(source_path("docs/llama-cpp.md"));
  const std::string document(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(document.contains("measured with libllama 0.7.0 and ggml 0.27.0"));
  EXPECT_EQ(library_versions().tested_with, "llama 0.7.0 with ggml 0.27.0");
}

TEST(VersionGate, OnlyTestedVersionPairPassesWithoutWarning) {
  ensure_backends_loaded();
  struct Case {
    const char *llama, *ggml;
    bool tested;
  };
  const Case cases[] = {{"0.7.0", "0.27.0", true},
                        {"0.7.1", "0.27.0", false},
                        {"0.7.0", "0.28.0", false},
                        {"0.6.9", "0.26.0", false},
                        {"0.27.0", "0.7.0", false},
                        {"0.7.0", "0.27.0-dirty", false},
                        {"", "", false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::format("{} {}", c.llama, c.ggml));
    configure_library({.llama = c.llama, .ggml = c.ggml});
    EXPECT_EQ(library_versions().tested, c.tested);
    const auto checked = self_check(kTestPaths.bundled_model);
    ASSERT_TRUE(checked.has_value()) << checked.error();
    EXPECT_EQ(checked->warning,
              c.tested ? ""
                       : std::format("llama {} with ggml {} is not a version that tensor-trace "
                                     "was tested with (llama 0.7.0 with ggml 0.27.0).",
                                     c.llama, c.ggml));
  }
  configure_library({});
}

// ---------------------------------------------------------------- callbacks

TEST(SelfCheck, InstalledLibraryPasses) {
  ensure_backends_loaded();
  configure_library({});
  const auto checked = self_check(kTestPaths.bundled_model);
  ASSERT_TRUE(checked.has_value()) << checked.error();
  EXPECT_GT(checked->ops, 50U);
}

TEST(SelfCheck, ReportsMissingModel) {
  configure_library({});
  const auto checked = self_check("/nonexistent.gguf");
  ASSERT_FALSE(checked.has_value());
  EXPECT_NE(checked.error().find("/nonexistent.gguf"), std::string::npos);
}

// Step 0 is learned, step 1 has its structure, the others are known: again 5 tokens, then one each.
TEST(SelfCheck, DetectsEveryDeviation) {
  ensure_backends_loaded();
  struct Case {
    const char* name;
    FakeLibrary library;
    const char* says;
  };
  const Case cases[] = {
      {"a tick is lost in a new graph", {.tick_lost_in = 1}, "step 1 has"},
      {"a tick is lost in a prompt", {.tick_lost_in = 2}, "step 2 has"},
      {"a tick is lost in a decode", {.tick_lost_in = 3}, "step 3 has"},
      {"a tick is lost in the last decode", {.tick_lost_in = 5}, "step 5 has"},
      {"ops as many, of another graph", {.other_graph = true}, "step 0 has"},
      {"the same graph reads something else", {.other_tokens = true}, "step 0 has"},
      {"every graph is new", {.new_graph_each_time = true}, "rebuilds graphs that it could reuse"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    configure_library(c.library);
    const auto checked = self_check(kTestPaths.bundled_model);
    ASSERT_FALSE(checked.has_value());
    EXPECT_TRUE(checked.error().contains(c.says)) << checked.error();
  }
  configure_library({});
}

// ---------------------------------------------------------------- consequences

struct Silent final : SessionListener {
  void on_state(const JobStatus&) override {}
  void on_progress(const JobStatus&) override {}
  void on_token(const std::string&, const Token&, std::string_view) override {}
  void on_step(const std::string&, const Step&, const KnownGraphPtr&) override {}
};

struct Recorded {
  LoadState load;
  SessionInfo info;
  std::vector<Timing> timing;  // by step
  std::string fact(std::string_view name) const {
    const auto found = std::ranges::find(info.facts, name, [](const auto& of) { return of.first; });
    return found == info.facts.end() ? "" : found->second;
  }
};

// Records one session of the bundled model with this library.
Recorded recorded_with(const FakeLibrary& library) {
  ensure_backends_loaded();
  configure_library(library);
  const TempFolder folder;
  Silent listener;
  GenerationQueue queue({.model = {.path = kTestPaths.bundled_model},
                         .context = TracedModel::small_context(),
                         .data_dir = folder.path(),
                         .self_check_model = kTestPaths.bundled_model},
                        listener);
  Recorded recorded;
  EXPECT_TRUE(wait_until([&] {
    recorded.load = queue.load_state();
    return recorded.load.phase != LoadState::Phase::Loading;
  }));
  EXPECT_EQ(recorded.load.phase, LoadState::Phase::Ready) << recorded.load.error;
  const auto job = queue.submit(greedy_tokens(5, 6));
  EXPECT_TRUE(job.has_value());
  EXPECT_TRUE(wait_until([&] {
    const JobState state = queue.status(job->id)->state;
    return state != JobState::Queued && state != JobState::Running;
  }));
  queue.stop();
  configure_library({});
  const auto reader = SessionReader::open(folder.path() / (job->id + ".ttrace"));
  EXPECT_TRUE(reader.has_value());
  recorded.info = reader->info().value();
  EXPECT_TRUE(reader->for_each_step(StepId{0}, 1000, [&](const Step& step) {
    recorded.timing.push_back(step.timing);
    return true;
  }));
  return recorded;
}

TEST(SelfCheck, TestedLibraryIsTimedFastWithoutWarning) {
  const Recorded recorded = recorded_with({.llama = "0.7.0", .ggml = "0.27.0"});
  EXPECT_EQ(recorded.load.warning, "");
  EXPECT_EQ(recorded.fact("library.tested"), "yes");
  EXPECT_TRUE(recorded.fact("trace.self_check").starts_with("passed, "));
  EXPECT_GE(std::ranges::count(recorded.timing, Timing::Fast), 4);
}

TEST(SelfCheck, UntestedConformingLibraryIsTimedFastWithWarning) {
  const Recorded recorded = recorded_with({.llama = "0.9.0", .ggml = "0.31.0"});
  EXPECT_TRUE(recorded.load.warning.contains("llama 0.9.0 with ggml 0.31.0 is not a version"))
      << recorded.load.warning;
  EXPECT_EQ(recorded.fact("library.llama"), "0.9.0");
  EXPECT_EQ(recorded.fact("library.tested"), "no");
  EXPECT_GE(std::ranges::count(recorded.timing, Timing::Fast), 4);
}

TEST(SelfCheck, DeviatingLibraryIsTimedExactlyWithWarning) {
  const Recorded recorded = recorded_with({.tick_lost_in = 3});
  EXPECT_TRUE(recorded.load.warning.contains("Every session uses exact timing"))
      << recorded.load.warning;
  EXPECT_TRUE(
      recorded.fact("trace.self_check").contains("does not call back as tensor-trace expects"))
      << recorded.fact("trace.self_check");
  EXPECT_EQ(std::ranges::count(recorded.timing, Timing::Fast), 0);
  EXPECT_GE(std::ranges::count(recorded.timing, Timing::Exact), 4);
}

}  // namespace
}  // namespace tt::test
