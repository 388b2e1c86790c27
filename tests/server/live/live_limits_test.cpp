// The limits for live clients in api/live.md, with a fake front end, engine and
// session file.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/live/live_clients.h"
#include "tests/server/live/simulated_live_client.h"

namespace tt::test {
namespace {

TEST(LiveClientLimits, UnacknowledgedBytesStayWithinWindow) {
  LiveClientsHarness harness({.window = 3000});
  harness.clients.opened(kMe);
  harness.state("a", JobState::Running);
  harness.send_command(kMe, subscribe({"token"}));
  const auto bytes_in_transit = [&] {
    std::size_t bytes = 0;
    for (const LiveMessage& message : harness.outbox[kMe]) bytes += message.bytes.size();
    return bytes;
  };
  for (int i = 0; i < 500; ++i) {
    harness.token("a");
    harness.clients.flush();
    ASSERT_LE(bytes_in_transit(), 3000u);
  }
  EXPECT_GT(bytes_in_transit(), 2500u);
  // Replies to commands are sent regardless of the window.
  harness.send_command(kMe, {{"type", "unsubscribe"}, {"session", "b"}});
  EXPECT_EQ(LiveClientsHarness::event_of(harness.outbox[kMe].back())["type"], "unsubscribed");
  // Each acknowledged byte makes room for another one.
  const std::size_t received = bytes_in_transit();
  std::exchange(harness.outbox[kMe], {});
  harness.send_command(kMe, {{"type", "ack"}, {"bytes", received}});
  harness.clients.flush();
  EXPECT_GT(bytes_in_transit(), 2500u);
  EXPECT_LE(bytes_in_transit(), 3000u);
  EXPECT_EQ(harness.clients.counts().lost, 0u);
}

TEST(LiveClientLimits, ThinnedClientGetsLatestDataAndLossCounts) {
  LiveClientsHarness harness({.window = 4000});
  harness.state("a", JobState::Running);
  SimulatedLiveClient thin{harness, 1000};
  thin.transcript.gaps_allowed = true;
  thin.connect(kAllKinds, {{"thin", "latest"}});
  for (std::uint32_t id = 0; id < 200; ++id) {
    harness.token("a");
    harness.step("a", live_step(id, 30));
    harness.clients.flush();
    if (id % 50 == 49) {
      thin.read(1000);
      thin.acknowledge();
      harness.clients.flush();
    }
  }
  harness.state("a", JobState::Done);
  for (int i = 0; i < 50 && !thin.transcript.ended(); ++i) {
    harness.clients.flush();
    thin.read(1000);
    thin.acknowledge();
  }
  ASSERT_TRUE(thin.transcript.ended());
  const LiveTranscript& transcript = thin.transcript;
  EXPECT_GT(transcript.lost["steps"], 100);
  EXPECT_EQ(transcript.tokens.size() + transcript.lost["tokens"].get<std::size_t>(), 200u);
  EXPECT_EQ(transcript.steps.size() + transcript.lost["steps"].get<std::size_t>(), 200u);
  std::size_t complete = 0;
  for (const auto& [id, ops] : transcript.ops) complete += ops.complete ? 1 : 0;
  EXPECT_EQ(complete + transcript.lost["ops"].get<std::size_t>(), 200u);
  // The newest step is always sent, completely.
  EXPECT_EQ(transcript.steps.back()["step"], 199);
  EXPECT_EQ(transcript.ops.at(199).end.size(), 30u);
  EXPECT_EQ(harness.clients.counts().lost, 0u + transcript.lost["tokens"].get<std::size_t>() +
                                               transcript.lost["steps"].get<std::size_t>() +
                                               transcript.lost["ops"].get<std::size_t>() +
                                               transcript.lost["routing"].get<std::size_t>());
}

TEST(LiveClientLimits, UnrecordedEventsAreBufferedThenCountedAsLost) {
  LiveClientsHarness harness({.window = 3000, .session_log_bytes = 10'000});
  harness.has_file = false;
  harness.state("a", JobState::Running);
  for (int i = 0; i < 5; ++i) harness.token("a");  // before the first client
  SimulatedLiveClient slow{harness, 1000};
  slow.transcript.gaps_allowed = true;
  slow.connect({"token"}, {{"from", {{"token", 0}}}});
  for (int i = 0; i < 1000; ++i) {
    harness.token("a");
    harness.clients.flush();
    harness.serve_read_request();
  }
  EXPECT_LE(harness.clients.counts().log_bytes, 10'000u);
  harness.state("a", JobState::Done);
  for (int i = 0; i < 100 && !slow.transcript.ended(); ++i) {
    slow.read(1000);
    slow.acknowledge();
    harness.clients.flush();
    harness.serve_read_request();
  }
  ASSERT_TRUE(slow.transcript.ended());
  EXPECT_GT(slow.transcript.lost["tokens"], 500);
  EXPECT_EQ(slow.transcript.tokens.size() + slow.transcript.lost["tokens"].get<std::size_t>(),
            1005u);
  EXPECT_EQ(slow.transcript.tokens.back()["index"], 1004);
}

TEST(LiveClientLimits, ViolationsAreReportedThenCloseTheConnection) {
  LiveClientsHarness harness({.commands = 20, .commands_per_second = 10});
  harness.clients.opened(kMe);
  harness.events(kMe);
  // Acknowledging bytes that were not sent: first an error, then the connection is closed.
  for (const int code : {0, 1008}) {
    harness.send_command(kMe, {{"type", "ack"}, {"bytes", 1'000'000}});
    EXPECT_EQ(harness.events(kMe).at(0)["code"], "bad_ack");
    EXPECT_EQ(harness.closed[kMe], code);
  }
  harness.send_command(kMe, {{"type", "unsubscribe"}, {"session", "a"}});
  EXPECT_TRUE(harness.events(kMe).empty());  // its commands are ignored after the close

  // Nine invalid commands get an error; the tenth closes the connection.
  harness.clients.opened(kOther);
  harness.events(kOther);
  for (int i = 0; i < 9; ++i) {
    harness.clients.handle_message(kOther, "{\"type\": \"shout\"}");
    EXPECT_EQ(harness.events(kOther).at(0)["code"], "bad_command");
  }
  EXPECT_FALSE(harness.closed.contains(kOther));
  harness.clients.handle_message(kOther, "");
  EXPECT_EQ(harness.closed[kOther], 1008);

  // A burst of 20 commands; above 10 per second, reading is paused.
  const ClientId fast_client{3};
  harness.clients.opened(fast_client);
  harness.events(fast_client);
  const json unsubscribe_command = {{"type", "unsubscribe"}, {"session", "a"}};
  const auto send_command = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) harness.send_command(fast_client, unsubscribe_command);
    EXPECT_EQ(harness.types(fast_client), std::vector<std::string>(times, "unsubscribed"));
  };
  send_command(20);
  EXPECT_FALSE(harness.paused.contains(fast_client));
  send_command(1);  // one too many: paused until ten commands are allowed again
  EXPECT_EQ(harness.paused[fast_client], std::chrono::milliseconds(1100));
  harness.now += std::exchange(harness.paused[fast_client], {});
  send_command(10);
  EXPECT_EQ(harness.paused[fast_client], std::chrono::milliseconds(0));
  send_command(5);  // already in transit
  EXPECT_EQ(harness.paused[fast_client], std::chrono::milliseconds(1500));
  EXPECT_FALSE(harness.closed.contains(fast_client));

  // A client that sends commands without reading fills the send queue and is closed.
  const ClientId unread_client{4};
  harness.clients.opened(unread_client);
  harness.send_queue_full = true;
  harness.send_command(unread_client, unsubscribe_command);
  EXPECT_EQ(harness.closed[unread_client], 1008);
}

TEST(LiveClientLimits, StateOfDisconnectedClientsIsReleased) {
  LiveClientsHarness harness;
  harness.clients.opened(kMe);
  harness.state("a", JobState::Running);
  harness.send_command(kMe, subscribe(kAllKinds));
  for (std::uint32_t id = 0; id < 50; ++id) harness.step("a", live_step(id, 100));
  EXPECT_GT(harness.clients.counts().log_bytes, 10'000u);
  EXPECT_TRUE(harness.clients.needs_polling());
  harness.clients.closed(kMe);
  EXPECT_EQ(harness.clients.counts().log_bytes, 0u);
  EXPECT_EQ(harness.clients.counts().subscriptions, 0u);
  EXPECT_FALSE(harness.clients.needs_polling());
}

}  // namespace
}  // namespace tt::test
