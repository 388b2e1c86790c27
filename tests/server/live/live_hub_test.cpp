// Events of several threads reach clients complete and in order; events that a client missed
// are read from the session's file.
#include "server/live/live_hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/live/live_stage.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;

constexpr ClientId kMe{1};

// A hub that sends into a list and opens files of a folder.
struct HubStage {
  void start(LiveLimits limits = {}) {
    hub.start(
        {.send =
             [this](ClientId id, Opcode opcode, std::span<const std::byte> bytes) {
               sending = true;
               held.wait(true);
               if (id != kMe) return true;
               sent += bytes.size();
               messages.push_back({.opcode = opcode, .bytes = {bytes.begin(), bytes.end()}});
               const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                           bytes.size());
               if (opcode == Opcode::Text && text.contains("\"state\":\"done\"")) ended = true;
               // Acknowledges every message; the small window keeps the client behind.
               if (reads) say(R"({"type":"ack","bytes":)" + std::to_string(sent) + "}");
               return true;
             },
         .close = [this](ClientId, std::uint16_t code) { closed = code; },
         .pause = [this](ClientId, std::chrono::milliseconds) { ++pauses; },
         .status = [](const std::string& id) -> std::optional<JobStatus> {
           if (id != "a") return std::nullopt;
           return status(id, JobState::Running);
         },
         .in_flight = [this](const std::string&, std::uint32_t) -> std::optional<StepInFlight> {
           ++looks;
           return std::nullopt;
         },
         .open = [this](const std::string& id) -> std::expected<SessionReader, TraceError> {
           const auto file = folder.path() / (id + ".ttrace");
           if (!std::filesystem::exists(file))
             return std::unexpected(TraceError{TraceError::Kind::NotFound, "no such file"});
           return SessionReader::open(file);
         }},
        limits);
  }
  static JobStatus status(const std::string& id, JobState state) {
    JobStatus out;
    out.n_layers = 2;
    out.id = id;
    out.state = state;
    return out;
  }
  void say(const std::string& text) {
    hub.on_message(kMe, std::as_bytes(std::span(text)), Opcode::Text);
  }
  // Call after stop().
  LiveHeard heard() const {
    LiveHeard heard;
    for (const LiveMessage& message : messages) {
      if (message.opcode == Opcode::Binary) {
        heard.add_frame(message.bytes);
      } else if (const json event = LiveStage::event_of(message); event.contains("session")) {
        heard.add(event);
      }
    }
    return heard;
  }

  TempFolder folder;
  std::atomic<bool> reads = true, ended = false, held = false, sending = false;
  std::atomic<std::uint16_t> closed = 0;
  std::atomic<int> looks = 0, pauses = 0;
  std::atomic<std::uint64_t> sent = 0;
  std::vector<LiveMessage> messages;  // written by the hub's thread; read after stop()
  LiveHub hub;
};

constexpr const char* kEverything =
    R"({"type":"subscribe","session":"a","kinds":["token","step","op","progress"],"from":{}})";

TEST(LiveHub, MergesEventsOfAllThreadsAndReadsMissedOnesFromFile) {
  HubStage stage;
  SessionInfo info = SmallSession::small_info();
  info.id = "a";
  auto file = SessionWriter::create(stage.folder / "a.ttrace", info);
  ASSERT_TRUE(file.has_value());
  SessionWriter& writer = **file;
  const auto graph = std::make_shared<const KnownGraph>(
      KnownGraph{.graph = small_graph(), .accesses = accesses_of(small_graph())});
  ASSERT_TRUE(writer.add_template(TemplateId{1}, graph->graph).has_value());
  const Allocation allocation{
      .id = AllocationId{1},
      .graph = TemplateId{1},
      .addresses = std::vector<std::uint64_t>(graph->graph.tensors.size(), 0)};
  ASSERT_TRUE(writer.add_allocation(allocation).has_value());

  // A small window keeps the client behind, and the small log drops events.
  stage.start({.window = 2000, .session_log_bytes = 20'000});
  stage.hub.on_state(HubStage::status("a", JobState::Running));
  stage.hub.on_open(kMe, {});
  stage.say(kEverything);

  constexpr std::uint32_t kEach = 400;
  {
    std::atomic<std::uint32_t> made = 0;
    const std::jthread inference([&] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        stage.hub.on_token("a", Token{.index = i, .text = {}}, "x");
        stage.hub.on_progress(HubStage::status("a", JobState::Running));
        made = i + 1;
        if (i == 100) stage.reads = false;
        if (i == 300) {
          stage.reads = true;
          stage.say(R"({"type":"ack","bytes":)" + std::to_string(stage.sent) + "}");
        }
      }
    });
    const std::jthread recorder([&] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        while (made <= i) std::this_thread::yield();
        Step step = small_step(i);
        step.n_tokens = 1;
        step.first_token = i;
        const Token token{.index = i, .text = {}};
        EXPECT_TRUE(writer.add_tokens({&token, 1}).has_value());
        EXPECT_TRUE(writer.add_step(step).has_value());
        EXPECT_TRUE(writer.commit().has_value());
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
  info.state = SessionState::Done;
  ASSERT_TRUE(writer.finish(info, {}).has_value());
  stage.hub.on_state(HubStage::status("a", JobState::Done));
  for (int i = 0; i < 6000 && !stage.ended; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(stage.hub.figures().clients, 1u);
  EXPECT_EQ(stage.hub.figures().lost, 0u);
  stage.hub.stop();

  const LiveHeard heard = stage.heard();
  EXPECT_TRUE(heard.ended());
  EXPECT_TRUE(heard.lost.empty()) << heard.lost;
  EXPECT_EQ(heard.tokens.size(), kEach);
  EXPECT_EQ(heard.steps.size(), kEach);
  ASSERT_EQ(heard.ops.size(), kEach);
  for (const auto& [id, ops] : heard.ops) EXPECT_EQ(ops.end, small_step(id).op_ends);
  EXPECT_FALSE(heard.progress.empty());
}

TEST(LiveHub, PollsInFlightStepOnlyWithSubscribers) {
  HubStage stage;
  stage.start();
  stage.hub.on_open(kMe, {});
  stage.hub.on_state(HubStage::status("a", JobState::Running));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(stage.looks, 0);
  stage.say(R"({"type":"subscribe","session":"a","kinds":["op"]})");
  for (int i = 0; i < 3000 && stage.looks < 5; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_GE(stage.looks, 5);
}

TEST(LiveHub, WithoutClientsQueuesNothingButTracksPosition) {
  HubStage stage;
  stage.start();
  stage.hub.on_state(HubStage::status("a", JobState::Running));
  const auto graph = std::make_shared<const KnownGraph>();
  for (std::uint32_t i = 0; i < 100; ++i) {
    stage.hub.on_token("a", Token{.index = i, .text = {}}, "x");
    stage.hub.on_step("a", live_step(i, 2), graph);
  }
  stage.hub.on_text("a", "rest");
  EXPECT_LE(stage.hub.figures().queued_bytes, 0u);
  stage.hub.on_open(kMe, {});
  stage.say(R"({"type":"subscribe","session":"a","kinds":["token","op"]})");
  stage.hub.stop();
  EXPECT_EQ(stage.heard().at, (json{{"token", 101}, {"step", 100}, {"op", 0}, {"routing", 0}}));
}

TEST(LiveHub, QueueIsLimitedAndLossesAreReported) {
  HubStage stage;
  stage.hub.on_open(kMe, {});  // not started: the queue is not drained
  stage.hub.on_state(HubStage::status("a", JobState::Running));
  stage.say(R"({"type":"subscribe","session":"a","kinds":["token"],"from":{}})");
  constexpr std::uint32_t kMany = 200'000;
  for (std::uint32_t i = 0; i < kMany; ++i)
    stage.hub.on_token("a", Token{.index = i, .text = {}}, "x");
  EXPECT_LE(stage.hub.figures().queued_bytes, 16u << 20);
  stage.hub.on_state(HubStage::status("a", JobState::Done));
  stage.start();  // the session has no file
  for (int i = 0; i < 6000 && !stage.ended; ++i) std::this_thread::sleep_for(10ms);
  stage.hub.stop();
  std::uint64_t tokens = 0, lost = 0;
  for (const LiveMessage& message : stage.messages) {
    const json event = LiveStage::event_of(message);
    tokens += event["type"] == "token" ? 1u : 0u;
    if (event["type"] == "loss") lost = event["tokens"];
  }
  EXPECT_LT(tokens, kMany);
  EXPECT_EQ(tokens + lost, kMany);
}

TEST(LiveHub, ClientWithPendingCommandsIsPaused) {
  HubStage stage;
  stage.reads = false;
  stage.held = true;  // blocks the hub's thread
  stage.start({.commands = 1'000'000});
  stage.hub.on_open(kMe, {});
  while (!stage.sending) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 63; ++i) stage.say(R"({"type":"unsubscribe","session":"a"})");
  EXPECT_EQ(stage.pauses, 0);
  stage.say(R"({"type":"unsubscribe","session":"a"})");
  EXPECT_EQ(stage.pauses, 1);
  // Few commands with many bytes.
  const ClientId other{2};
  stage.hub.on_open(other, {});
  const std::string large(kMostCommandBytes, ' ');
  for (int i = 0; i < 8; ++i)
    stage.hub.on_message(other, std::as_bytes(std::span(large)), Opcode::Text);
  EXPECT_EQ(stage.pauses, 2);
  stage.held = false;
  stage.held.notify_all();
  stage.hub.stop();
  EXPECT_EQ(stage.closed, 0);  // sending too fast does not close the connection
  EXPECT_EQ(stage.messages.size(), 1u + 64u);
  EXPECT_EQ(stage.pauses, 2);
}

}  // namespace
}  // namespace tt::test
