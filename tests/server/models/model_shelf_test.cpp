// The model manager without HTTP: concurrent use and limits.
#include "server/models/model_shelf.h"

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
#include "tracer/engine/backends.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;
// Counts the final states; each session must have exactly one.
class Ends final : public SessionListener {
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
    for (const char* name : {"a", "b", "c"}) put_model(folder.path(), name, "small", 1);
  }
  ModelShelf::Options options(std::size_t most_loaded) {
    return {.folder = folder.path(),
            .context = {.context = 256, .batch = 64, .ubatch = 64, .threads = 1},
            .most_loaded = most_loaded,
            .data_dir = data.path()};
  }
  static bool load_and_wait(ModelShelf& shelf, const std::string& id) {
    if (!shelf.load(id)) return false;
    for (int i = 0; i < 60'000; ++i) {
      const auto entry = shelf.model(id);
      if (!entry || entry->state == ModelState::Failed) return false;
      if (entry->state == ModelState::Loaded) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  static void wait_for_end(ModelShelf& shelf, const std::string& session) {
    for (int i = 0; i < 60'000 && shelf.status(session)->state <= JobState::Running; ++i)
      std::this_thread::sleep_for(1ms);
  }

  TempFolder folder, data;
  Ends ends;
};

TEST_F(ModelManagerTest, IsThreadSafe) {
  constexpr std::size_t kMostLoaded = 2;
  ModelShelf shelf(options(kMostLoaded), ends);
  std::mutex mutex;
  std::vector<std::string> accepted;
  const auto some_session = [&](std::size_t number) -> std::string {
    const std::scoped_lock lock(mutex);
    return accepted.empty() ? "none" : accepted[number % accepted.size()];
  };
  // On a busy machine loading one model can take as long as the whole test elsewhere.
  constexpr std::size_t kEnough = 10;
  const auto few = [&] {
    const std::scoped_lock lock(mutex);
    return accepted.size() <= kEnough;
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 dice(seed);
      const std::vector<std::string> ids = {"a", "b", "c"};
      for (int i = 0; i < 80 || (i < 20'000 && few()); ++i) {
        const std::string& id = ids[dice() % 3];
        switch (dice() % 8) {
          case 0:
            (void)shelf.load(id);
            break;
          case 1:
            (void)shelf.unload(id);
            break;
          case 2:
          case 3:
          case 4: {
            const auto status = shelf.submit(dice() % 4 == 0 ? "" : id,
                                             request_of(static_cast<std::uint32_t>(dice() % 8)));
            if (!status) break;
            const std::scoped_lock lock(mutex);
            accepted.push_back(status->id);
            break;
          }
          case 5:
            (void)shelf.cancel(some_session(dice()));
            break;
          case 6:
            (void)shelf.in_flight(some_session(dice()), 0);
            (void)shelf.status(some_session(dice()));
            break;
          default: {
            std::size_t in_memory = 0;
            for (const ModelEntry& entry : shelf.models())
              in_memory += entry.state == ModelState::Loaded || entry.state == ModelState::Loading;
            EXPECT_LE(in_memory, kMostLoaded);
            (void)shelf.current();
            // Accepted requests are always found.
            const std::string session = some_session(dice());
            if (session != "none") {
              EXPECT_TRUE(shelf.status(session).has_value());
            }
          }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(dice() % 8)));
      }
    });
  }
  threads.clear();
  shelf.stop();
  EXPECT_GT(accepted.size(), kEnough);
  EXPECT_EQ(shelf.statuses().size(), accepted.size());
  for (const std::string& session : accepted) {
    const auto status = shelf.status(session);
    ASSERT_TRUE(status.has_value());
    EXPECT_GT(status->state, JobState::Running);
    EXPECT_EQ(ends.of(session), 1) << session;
  }
  EXPECT_EQ(shelf.submit("a", request_of(1)).error().fault, Fault::Stopping);
  EXPECT_EQ(shelf.load("a").error().fault, Fault::Stopping);
  shelf.stop();  // repeated: no effect
}

TEST_F(ModelManagerTest, StopsInAnyState) {
  for (int i = 0; i < 10; ++i) {
    ModelShelf shelf(options(3), ends);
    for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(shelf.load(id).has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * i));
    (void)shelf.submit("", request_of(100));
  }
}

TEST_F(ModelManagerTest, KeepsNewestRequests) {
  ModelShelf shelf(options(1), ends);
  ASSERT_TRUE(load_and_wait(shelf, "a"));
  std::vector<std::string> sessions;
  constexpr std::size_t kMore = 30;
  for (std::size_t i = 0; i < ModelShelf::kRemembered + kMore; ++i) {
    auto status = shelf.submit("a", request_of(0));
    while (!status && status.error().fault == Fault::QueueFull) {
      std::this_thread::sleep_for(1ms);
      status = shelf.submit("a", request_of(0));
    }
    ASSERT_TRUE(status.has_value()) << status.error().detail;
    sessions.push_back(status->id);
    if (i == kMore) {  // the remaining requests belong to another load of the model
      wait_for_end(shelf, sessions.back());
      ASSERT_TRUE(shelf.unload("a").has_value());
      ASSERT_TRUE(load_and_wait(shelf, "b"));
      ASSERT_TRUE(load_and_wait(shelf, "a"));
    }
  }
  wait_for_end(shelf, sessions.back());
  const auto newest = shelf.statuses();
  ASSERT_EQ(newest.size(), ModelShelf::kRemembered);
  for (std::size_t i = 0; i < newest.size(); ++i)
    EXPECT_EQ(newest[i].id, sessions[sessions.size() - 1 - i]);
}

}  // namespace
}  // namespace tt::test
