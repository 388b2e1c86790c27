// The model manager without HTTP: concurrent use and limits.
#include "server/models/model_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/models/model_files.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/wait.h"
#include "tracer/engine/backends.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;
// Counts the final states; each session must have exactly one.
class EndCounter final : public SessionListener {
 public:
  void on_state(const JobStatus& status) override {
    if (status.state <= JobState::Running) return;
    const std::scoped_lock lock(mutex_);
    ++ends_[status.id];
  }
  void on_progress(const JobStatus&) override {}
  void on_token(const std::string&, const Token&, std::string_view) override {}
  void on_step(const std::string&, const Step&, const KnownGraphPtr&) override {}
  int of(const std::string& session) {
    const std::scoped_lock lock(mutex_);
    return ends_[session];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> ends_;
};

GenerationRequest request_of(std::uint32_t tokens) {
  GenerationRequest request;
  request.prompt = std::vector<std::int32_t>{1, 2, 3};
  request.max_tokens = tokens;
  request.ignore_eos = true;
  request.level = Level::Off;
  return request;
}

class ModelManagerTest : public ::testing::Test {
 protected:
  ModelManagerTest() {
    static const bool ready = [] {
      load_backends({});
      return true;
    }();
    (void)ready;
    for (const char* name : {"a", "b", "c"}) copy_model(folder.path(), name, "small", 1);
  }
  ModelManager::Options options(std::size_t max_loaded) {
    return {.folder = folder.path(),
            .context = {.context = 256, .batch = 64, .ubatch = 64, .threads = 1},
            .max_loaded = max_loaded,
            .data_dir = data.path()};
  }
  static bool load_and_wait(ModelManager& manager, const std::string& id) {
    if (!manager.load(id)) return false;
    auto entry = manager.model(id);
    return wait_until([&] {
             entry = manager.model(id);
             return !entry || entry->state != ModelState::Loading;
           }) &&
           entry && entry->state == ModelState::Loaded;
  }
  static void wait_for_end(ModelManager& manager, const std::string& session) {
    EXPECT_TRUE(wait_until([&] { return manager.status(session)->state > JobState::Running; }));
  }

  TempFolder folder, data;
  EndCounter ends;
};

// The model of --model may be anywhere; a link to it in the folder is another entry.
TEST_F(ModelManagerTest, ReportsEachLinkOutsideOnce) {
  const TempFolder outside;
  ModelManager::Options with = options(1);
  with.model.path = copy_model(outside.path(), "away", "small", 1);
  std::filesystem::create_symlink(with.model.path, folder.path() / "link.gguf");
  std::mutex mutex;
  std::vector<std::string> reported;
  with.on_change = [&](const ModelEntry& entry) {
    const std::scoped_lock lock(mutex);
    if (entry.state == ModelState::Failed) reported.push_back(entry.id + ": " + entry.error);
  };
  ModelManager manager(with, ends);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(manager.models().size(), 5U);
  EXPECT_TRUE(wait_until([&] { return manager.model("away")->state == ModelState::Loaded; }));
  EXPECT_EQ(manager.model("link")->state, ModelState::Failed);
  manager.stop();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_TRUE(reported[0].starts_with("link: " + (folder.path() / "link.gguf").string()))
      << reported[0];
}

// Whoever sees that a load has failed can load another model: the failed one has no room any more.
TEST_F(ModelManagerTest, AFailedModelHasNoRoomAmongTheLoadedOnes) {
  for (const char* name : {"a", "b"}) {
    with_changes(folder.path() / "c.gguf", folder.path() / (std::string(name) + ".gguf"),
                 [](gguf_context* file) { gguf_remove_key(file, "tokenizer.ggml.model"); });
  }
  ModelManager manager(options(1), ends);
  for (int i = 0; i < 100; ++i) {
    const std::string id = i % 2 == 0 ? "a" : "b";
    const auto accepted = manager.load(id);
    ASSERT_TRUE(accepted.has_value()) << i << ": " << accepted.error().detail;
    EXPECT_EQ(accepted->state, ModelState::Loading);
    // Mostly without a pause: what comes between the failure and the end of the load is short.
    ASSERT_TRUE(wait_until([&] {
      for (int poll = 0; poll < 1000; ++poll)
        if (manager.model(id)->state == ModelState::Failed) return true;
      return false;
    }));
  }
}

TEST_F(ModelManagerTest, IsThreadSafe) {
  constexpr std::size_t kMaxLoaded = 2;
  ModelManager manager(options(kMaxLoaded), ends);
  std::mutex mutex;
  std::vector<std::string> accepted;
  const auto some_session = [&](std::size_t number) -> std::string {
    const std::scoped_lock lock(mutex);
    return accepted.empty() ? "none" : accepted[number % accepted.size()];
  };
  // On a busy machine loading one model can take as long as the whole test elsewhere.
  constexpr std::size_t kMinAccepted = 10;
  const auto needs_more = [&] {
    const std::scoped_lock lock(mutex);
    return accepted.size() <= kMinAccepted;
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 rng(seed);
      const std::vector<std::string> ids = {"a", "b", "c"};
      for (int i = 0; i < 80 || (i < 20'000 && needs_more()); ++i) {
        const std::string& id = ids[rng() % 3];
        switch (rng() % 8) {
          case 0:
            (void)manager.load(id);
            break;
          case 1:
            (void)manager.unload(id);
            break;
          case 2:
          case 3:
          case 4: {
            const auto status = manager.submit(rng() % 4 == 0 ? "" : id,
                                               request_of(static_cast<std::uint32_t>(rng() % 8)));
            if (!status) break;
            const std::scoped_lock lock(mutex);
            accepted.push_back(status->id);
            break;
          }
          case 5:
            (void)manager.cancel(some_session(rng()));
            break;
          case 6:
            (void)manager.in_flight(some_session(rng()), 0);
            (void)manager.status(some_session(rng()));
            break;
          default: {
            std::size_t in_memory = 0;
            for (const ModelEntry& entry : manager.models())
              in_memory += entry.state == ModelState::Loaded || entry.state == ModelState::Loading;
            EXPECT_LE(in_memory, kMaxLoaded);
            (void)manager.current();
            // Accepted requests are always found.
            const std::string session = some_session(rng());
            if (session != "none") {
              EXPECT_TRUE(manager.status(session).has_value());
            }
          }
        }
        // Random, so that calls meet models in every state.
        std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(rng() % 8)));
      }
    });
  }
  threads.clear();
  manager.stop();
  EXPECT_GT(accepted.size(), kMinAccepted);
  EXPECT_EQ(manager.statuses().size(), accepted.size());
  for (const std::string& session : accepted) {
    const auto status = manager.status(session);
    ASSERT_TRUE(status.has_value());
    EXPECT_GT(status->state, JobState::Running);
    EXPECT_EQ(ends.of(session), 1) << session;
  }
  EXPECT_EQ(manager.submit("a", request_of(1)).error().error_code, ErrorCode::Stopping);
  EXPECT_EQ(manager.load("a").error().error_code, ErrorCode::Stopping);
  manager.stop();  // repeated: no effect
}

TEST_F(ModelManagerTest, StopsInAnyState) {
  for (int i = 0; i < 10; ++i) {
    ModelManager manager(options(3), ends);
    for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(manager.load(id).has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * i));  // another moment each time
    (void)manager.submit("", request_of(100));
  }
}

TEST_F(ModelManagerTest, KeepsNewestRequests) {
  ModelManager manager(options(1), ends);
  ASSERT_TRUE(load_and_wait(manager, "a"));
  std::vector<std::string> sessions;
  constexpr std::size_t kMore = 30;
  for (std::size_t i = 0; i < ModelManager::kMaxEnded + kMore; ++i) {
    auto status = manager.submit("a", request_of(0));
    EXPECT_TRUE(wait_until([&] {
      if (status || status.error().error_code != ErrorCode::QueueFull) return true;
      status = manager.submit("a", request_of(0));
      return false;
    }));
    ASSERT_TRUE(status.has_value()) << status.error().detail;
    sessions.push_back(status->id);
    if (i == kMore) {  // the remaining requests belong to another load of the model
      wait_for_end(manager, sessions.back());
      ASSERT_TRUE(manager.unload("a").has_value());
      ASSERT_TRUE(load_and_wait(manager, "b"));
      ASSERT_TRUE(load_and_wait(manager, "a"));
    }
  }
  wait_for_end(manager, sessions.back());
  const auto newest = manager.statuses();
  ASSERT_EQ(newest.size(), ModelManager::kMaxEnded);
  for (std::size_t i = 0; i < newest.size(); ++i)
    EXPECT_EQ(newest[i].id, sessions[sessions.size() - 1 - i]);
}

}  // namespace
}  // namespace tt::test
