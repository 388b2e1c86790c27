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

#include "tests/server/live/live_clients_harness.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;

constexpr ClientId kMe{1};

// A hub that sends into a list and opens files of a folder.
struct LiveHubHarness {
  void start(LiveLimits limits = {}) {
    hub.start(
        {.send =
             [this](ClientId id, Opcode opcode, std::span<const std::byte> bytes) {
               sending = true;
               blocked.wait(true);
               if (id != kMe) return true;
               sent += bytes.size();
               messages.push_back({.opcode = opcode, .bytes = {bytes.begin(), bytes.end()}});
               const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                           bytes.size());
               if (opcode == Opcode::Text && text.contains("\"state\":\"done\"")) ended = true;
               // Acknowledges every message; the small window keeps the client behind.
               if (reads) send_command(R"({"type":"ack","bytes":)" + std::to_string(sent) + "}");
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
  void send_command(const std::string& text) {
    hub.on_message(kMe, std::as_bytes(std::span(text)), Opcode::Text);
  }
  // Call after stop().
  LiveTranscript transcript() const {
    LiveTranscript transcript;
    for (const LiveMessage& message : messages) {
      if (message.opcode == Opcode::Binary) {
        transcript.add_frame(message.bytes);
      } else if (const json event = LiveClientsHarness::event_of(message);
                 event.contains("session")) {
        transcript.add(event);
      }
    }
    return transcript;
  }

  TempFolder folder;
  std::atomic<bool> reads = true, ended = false, blocked = false, sending = false;
  std::atomic<std::uint16_t> closed = 0;
  std::atomic<int> looks = 0, pauses = 0;
  std::atomic<std::uint64_t> sent = 0;
  std::vector<LiveMessage> messages;  // written by the hub's thread; read after stop()
  LiveHub hub;
};

constexpr const char* kSubscribeAll =
    R"({"type":"subscribe","session":"a","kinds":["token","step","op","progress"],"from":{}})";

TEST(LiveHub, MergesEventsOfAllThreadsAndReadsMissedOnesFromFile) {
  LiveHubHarness harness;
  SessionInfo info = SmallSession::small_info();
  info.id = "a";
  auto file = SessionWriter::create(harness.folder / "a.ttrace", info);
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
  harness.start({.window = 2000, .session_log_bytes = 20'000});
  harness.hub.on_state(LiveHubHarness::status("a", JobState::Running));
  harness.hub.on_open(kMe, {});
  harness.send_command(kSubscribeAll);

  constexpr std::uint32_t kEventCount = 400;
  {
    std::atomic<std::uint32_t> made = 0;
    const std::jthread inference([&] {
      for (std::uint32_t i = 0; i < kEventCount; ++i) {
        harness.hub.on_token("a", Token{.index = i, .text = {}}, "x");
        harness.hub.on_progress(LiveHubHarness::status("a", JobState::Running));
        made = i + 1;
        if (i == 100) harness.reads = false;
        if (i == 300) {
          harness.reads = true;
          harness.send_command(R"({"type":"ack","bytes":)" + std::to_string(harness.sent) + "}");
        }
      }
    });
    const std::jthread recorder([&] {
      for (std::uint32_t i = 0; i < kEventCount; ++i) {
        while (made <= i) std::this_thread::yield();
        Step step = small_step(i);
        step.n_tokens = 1;
        step.first_token = i;
        const Token token{.index = i, .text = {}};
        EXPECT_TRUE(writer.add_tokens({&token, 1}).has_value());
        EXPECT_TRUE(writer.add_step(step).has_value());
        EXPECT_TRUE(writer.commit().has_value());
        harness.hub.on_step("a", step, graph);
      }
    });
    const std::jthread others([&] {
      for (std::uint32_t i = 2; i < 40; ++i) {
        harness.hub.on_open(ClientId{i}, {});
        harness.hub.on_close(ClientId{i});
      }
    });
  }
  info.state = SessionState::Done;
  ASSERT_TRUE(writer.finish(info, {}).has_value());
  harness.hub.on_state(LiveHubHarness::status("a", JobState::Done));
  EXPECT_TRUE(wait_until([&] { return harness.ended.load(); }));
  EXPECT_EQ(harness.hub.stats().clients, 1u);
  EXPECT_EQ(harness.hub.stats().lost, 0u);
  harness.hub.stop();

  const LiveTranscript transcript = harness.transcript();
  EXPECT_TRUE(transcript.ended());
  EXPECT_TRUE(transcript.lost.empty()) << transcript.lost;
  EXPECT_EQ(transcript.tokens.size(), kEventCount);
  EXPECT_EQ(transcript.steps.size(), kEventCount);
  ASSERT_EQ(transcript.ops.size(), kEventCount);
  for (const auto& [id, ops] : transcript.ops) EXPECT_EQ(ops.end, small_step(id).op_ends);
  EXPECT_FALSE(transcript.progress.empty());
}

TEST(LiveHub, PollsInFlightStepOnlyWithSubscribers) {
  LiveHubHarness harness;
  harness.start();
  harness.hub.on_open(kMe, {});
  harness.hub.on_state(LiveHubHarness::status("a", JobState::Running));
  std::this_thread::sleep_for(100ms);  // several polling intervals: nothing may happen in them
  EXPECT_EQ(harness.looks, 0);
  harness.send_command(R"({"type":"subscribe","session":"a","kinds":["op"]})");
  EXPECT_TRUE(wait_until([&] { return harness.looks >= 5; }));
}

TEST(LiveHub, WithoutClientsQueuesNothingButTracksPosition) {
  LiveHubHarness harness;
  harness.start();
  harness.hub.on_state(LiveHubHarness::status("a", JobState::Running));
  const auto graph = std::make_shared<const KnownGraph>();
  for (std::uint32_t i = 0; i < 100; ++i) {
    harness.hub.on_token("a", Token{.index = i, .text = {}}, "x");
    harness.hub.on_step("a", live_step(i, 2), graph);
  }
  harness.hub.on_text("a", "rest");
  EXPECT_LE(harness.hub.stats().queued_bytes, 0u);
  harness.hub.on_open(kMe, {});
  harness.send_command(R"({"type":"subscribe","session":"a","kinds":["token","op"]})");
  harness.hub.stop();
  EXPECT_EQ(harness.transcript().at,
            (json{{"token", 101}, {"step", 100}, {"op", 0}, {"routing", 0}}));
}

TEST(LiveHub, QueueIsLimitedAndLossesAreReported) {
  LiveHubHarness harness;
  harness.hub.on_open(kMe, {});  // not started: the queue is not drained
  harness.hub.on_state(LiveHubHarness::status("a", JobState::Running));
  harness.send_command(R"({"type":"subscribe","session":"a","kinds":["token"],"from":{}})");
  constexpr std::uint32_t kCount = 200'000;
  for (std::uint32_t i = 0; i < kCount; ++i)
    harness.hub.on_token("a", Token{.index = i, .text = {}}, "x");
  EXPECT_LE(harness.hub.stats().queued_bytes, 16u << 20);
  harness.hub.on_state(LiveHubHarness::status("a", JobState::Done));
  harness.start();  // the session has no file
  EXPECT_TRUE(wait_until([&] { return harness.ended.load(); }));
  harness.hub.stop();
  std::uint64_t tokens = 0, lost = 0;
  for (const LiveMessage& message : harness.messages) {
    const json event = LiveClientsHarness::event_of(message);
    tokens += event["type"] == "token" ? 1u : 0u;
    if (event["type"] == "loss") lost = event["tokens"];
  }
  EXPECT_LT(tokens, kCount);
  EXPECT_EQ(tokens + lost, kCount);
}

TEST(LiveHub, ClientWithPendingCommandsIsPaused) {
  LiveHubHarness harness;
  harness.reads = false;
  harness.blocked = true;  // blocks the hub's thread
  harness.start({.commands = 1'000'000});
  harness.hub.on_open(kMe, {});
  ASSERT_TRUE(wait_until([&] { return harness.sending.load(); }));
  for (int i = 0; i < 63; ++i) harness.send_command(R"({"type":"unsubscribe","session":"a"})");
  EXPECT_EQ(harness.pauses, 0);
  harness.send_command(R"({"type":"unsubscribe","session":"a"})");
  EXPECT_EQ(harness.pauses, 1);
  // Few commands with many bytes.
  const ClientId other{2};
  harness.hub.on_open(other, {});
  const std::string large(kMaxCommandBytes, ' ');
  for (int i = 0; i < 8; ++i)
    harness.hub.on_message(other, std::as_bytes(std::span(large)), Opcode::Text);
  EXPECT_EQ(harness.pauses, 2);
  harness.blocked = false;
  harness.blocked.notify_all();
  harness.hub.stop();
  EXPECT_EQ(harness.closed, 0);  // sending too fast does not close the connection
  EXPECT_EQ(harness.messages.size(), 1u + 64u);
  EXPECT_EQ(harness.pauses, 2);
}

}  // namespace
}  // namespace tt::test
