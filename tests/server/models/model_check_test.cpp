// Damaged models: the trial run in a child either loads them or dies in our
// place, and what it let pass does load here.
#include "tracer/gguf/model_check.h"

#include <gtest/gtest.h>

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
#include "tests/support/models/model_edit.h"
#include "tests/support/places.h"
#include "tests/support/temp_folder.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/engine.h"

namespace tt {
namespace {

using namespace std::chrono_literals;

using test::contents;
using test::SoundModel;

class DamagedModel : public ::testing::TestWithParam<SoundModel::Kind> {};

// A thousand of all kinds.
TEST_P(DamagedModel, IsLoadedOrRefusedAndNeverEndsThisProcess) {
  const std::uint32_t kMutations = GetParam() == SoundModel::Kind::Dense ? 400 : 300;
  const test::TempFolder folder;
  const SoundModel sound(GetParam());
  ASSERT_TRUE(check_model(kPlaces.checker, sound.write(folder.path(), "sound")).has_value());

  std::atomic<std::uint32_t> next = 0;
  std::mutex mutex;
  std::vector<std::filesystem::path> passed;
  std::uint32_t refused = 0, died = 0, late = 0;
  std::map<std::string, int> deaths;
  const auto work = [&] {
    for (std::uint32_t seed = 0; (seed = next++) < kMutations;) {
      const std::string stem = std::format("m{}", seed);
      const auto path = sound.write_mutated(folder.path(), stem, seed);
      const auto verdict = check_model(kPlaces.checker, path, 20s);
      const std::scoped_lock lock(mutex);
      if (verdict) {
        passed.push_back(path);
        continue;
      }
      sound.remove(folder.path(), stem);
      EXPECT_NE(verdict.error().find(stem), std::string::npos) << verdict.error();
      if (verdict.error().find("crashed") != std::string::npos) {
        ++died;
        ++deaths[verdict.error().substr(verdict.error().find('('))];
      } else if (verdict.error().find("did not finish") != std::string::npos) {
        ++late;
      } else {
        ++refused;
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
      workers.emplace_back(work);
  }
  std::println("{} mutations: {} load, {} are refused, {} killed the child, {} took too long",
               kMutations, passed.size(), refused, died, late);
  for (const auto& [last, count] : deaths) std::println("  {} x {}", count, last.substr(0, 150));
  EXPECT_EQ(passed.size() + refused + died + late, kMutations);
  EXPECT_GT(passed.size(), kMutations / 10);
  EXPECT_GT(refused, kMutations / 4);
  EXPECT_EQ(late, 0u);

  // What passed loads here with the server's usual options: this process lives.
  load_backends({});
  ContextOptions context;
  context.context = 256;
  context.batch = context.ubatch = 128;
  for (const auto& path : passed) {
    ModelOptions model;
    model.path = path;
    const auto engine = Engine::load(model, context, {});
    EXPECT_TRUE(engine.has_value()) << path << ": " << engine.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Mutations, DamagedModel, ::testing::ValuesIn(SoundModel::kKinds),
                         [](const auto& made) { return test::name_of(made.param); });

TEST(ModelCheck, SaysWhatIsWrong) {
  const test::TempFolder folder;
  const std::string whole = contents(kPlaces.bundled_model);
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
    const auto verdict = check_model(kPlaces.checker, path);
    ASSERT_FALSE(verdict.has_value());
    EXPECT_NE(verdict.error().find(c.says), std::string::npos) << verdict.error();
    EXPECT_NE(verdict.error().find(c.name), std::string::npos) << verdict.error();
  }
  EXPECT_FALSE(check_model(kPlaces.checker, folder.path() / "absent.gguf").has_value());
  EXPECT_TRUE(check_model(kPlaces.checker, kPlaces.bundled_model).has_value());
}

// What renders a template recurses as deep as it nests, in the server on a thread of requests.
TEST(ModelCheck, ATemplateThatNestsWithoutEndEndsTheChildAlone) {
  const test::TempFolder folder;
  const auto with_template = [&](const std::string& source) {
    return test::with_changes(kPlaces.bundled_model, folder / "m.gguf", [&](auto* file) {
      gguf_set_val_str(file, "tokenizer.chat_template", source.c_str());
    });
  };
  const std::string deep(5'000, '(');
  for (const std::string& source :
       {"{{ " + deep, std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")}) {
    const auto verdict = check_model(kPlaces.checker, with_template(source));
    ASSERT_FALSE(verdict.has_value());
    EXPECT_TRUE(verdict.error().contains("(at its chat template)")) << verdict.error();
  }
  // One that is only wrong costs nothing but conversations.
  EXPECT_TRUE(check_model(kPlaces.checker, with_template("{% if %}")).has_value());
}

TEST(ModelCheck, ANoCheckerAndASlowOneAreErrors) {
  const auto missing = check_model("/nonexistent/checker", kPlaces.bundled_model);
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().find("/nonexistent/checker"), std::string::npos);
  // A program that waits for as long as its argument says.
  const auto late = check_model("/usr/bin/sleep", "1000", 200ms);
  ASSERT_FALSE(late.has_value());
  EXPECT_NE(late.error().find("did not finish"), std::string::npos);

  std::stop_source stop;
  std::jthread soon([&] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(check_model("/usr/bin/sleep", "1000", 60s, stop.get_token()).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

}  // namespace
}  // namespace tt
