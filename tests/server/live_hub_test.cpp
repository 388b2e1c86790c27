// Events from several threads at once reach a client whole and in order.
#include "server/live_hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "api/live_frames.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr ClientId kMe{1};

struct Stage {
  void start() {
    hub.start(
        {.send =
             [this](ClientId, Opcode opcode, std::span<const std::byte> bytes) {
               const auto* text = reinterpret_cast<const char*>(bytes.data());
               if (opcode == Opcode::Text) {
                 events.push_back(json::parse(text, text + bytes.size()));
               } else {
                 frames.push_back(*decode_ops_frame(bytes));
               }
               return true;
             },
         .status = [this](const std::string& id) -> std::optional<JobStatus> {
           return status(id, JobState::Running);
         },
         .in_flight = [this](const std::string&, std::uint32_t) -> std::optional<StepInFlight> {
           ++looks;
           return std::nullopt;
         },
         .n_layers = [](const std::string&) { return 0u; }});
  }
  static JobStatus status(const std::string& id, JobState state) {
    JobStatus out;
    out.id = id;
    out.state = state;
    return out;
  }
  void say(const std::string& text) {
    hub.on_message(kMe, std::as_bytes(std::span(text)), Opcode::Text);
  }

  // Written by the hub's thread, read after stop().
  std::vector<json> events;
  std::vector<OpsFrame> frames;
  std::atomic<int> looks = 0;
  LiveHub hub;
};

TEST(LiveHub, TakesEventsFromEveryThread) {
  Stage stage;
  stage.start();
  stage.hub.on_state(Stage::status("a", JobState::Running));
  stage.hub.on_open(kMe, {});
  stage.say(R"({"type":"subscribe","session":"a","kinds":["token","op","progress"]})");

  constexpr std::uint32_t kEach = 500;
  const auto graph = std::make_shared<const KnownGraph>();
  {
    const std::jthread inference([&] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        stage.hub.on_token("a", Token{.index = i, .text = {}}, "x");
        stage.hub.on_progress(Stage::status("a", JobState::Running));
      }
    });
    const std::jthread writer([&] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        Step step;
        step.id = StepId{i};
        step.op_ends = {Ns{1}, Ns{2}};
        stage.hub.on_step("a", step, graph);
      }
    });
    const std::jthread others([&] {
      for (std::uint32_t i = 2; i < 40; ++i) {
        stage.hub.on_open(ClientId{i}, {});
        stage.hub.on_close(ClientId{i});
      }
    });
  }
  stage.hub.on_state(Stage::status("a", JobState::Done));
  stage.hub.stop();

  std::map<std::string, std::uint32_t> counts;
  std::uint32_t next_token = 0;
  for (const json& event : stage.events) {
    ++counts[event["type"]];
    if (event["type"] == "token") {
      EXPECT_EQ(event["index"], next_token++);
    }
  }
  EXPECT_EQ(counts["token"], kEach);
  EXPECT_EQ(counts["progress"], kEach);
  EXPECT_EQ(counts["loss"], 0u);
  EXPECT_EQ(stage.events.back()["state"], "done");
  ASSERT_EQ(stage.frames.size(), kEach);
  for (std::uint32_t i = 0; i < kEach; ++i) EXPECT_EQ(stage.frames[i].step, StepId{i});
}

TEST(LiveHub, LooksOnlyWhileSomeoneWatchesARunningSession) {
  Stage stage;
  stage.start();
  stage.hub.on_open(kMe, {});
  stage.hub.on_state(Stage::status("a", JobState::Running));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LE(stage.looks, 2);  // with the events, not by the clock
  stage.say(R"({"type":"subscribe","session":"a","kinds":["op"]})");
  for (int i = 0; i < 500 && stage.looks < 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(stage.looks, 5);
}

TEST(LiveHub, ATorrentIsBoundedAndWhatIsLostIsTold) {
  Stage stage;
  stage.hub.on_open(kMe, {});  // not started: nothing is taken out of the queue
  stage.hub.on_state(Stage::status("a", JobState::Running));
  stage.say(R"({"type":"subscribe","session":"a","kinds":["token"]})");
  constexpr std::uint32_t kMany = 200'000;
  for (std::uint32_t i = 0; i < kMany; ++i)
    stage.hub.on_token("a", Token{.index = i, .text = {}}, "x");
  stage.hub.on_state(Stage::status("a", JobState::Done));
  stage.start();
  stage.hub.stop();
  std::uint32_t tokens = 0, lost = 0;
  for (const json& event : stage.events) {
    tokens += event["type"] == "token" ? 1u : 0u;
    if (event["type"] == "loss") lost = event["frames"];
  }
  EXPECT_LT(tokens, kMany);
  EXPECT_EQ(tokens + lost, kMany);
}

}  // namespace
}  // namespace tt
