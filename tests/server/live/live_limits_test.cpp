// The limits for live clients in api/live.md, with a fake front end, engine and
// session file.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/live/live_clients.h"
#include "tests/server/live/live_reader.h"

namespace tt::test {
namespace {

TEST(LiveClientLimits, UnacknowledgedBytesStayWithinWindow) {
  LiveStage stage({.window = 3000});
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say(kMe, subscribe({"token"}));
  const auto on_the_way = [&] {
    std::size_t bytes = 0;
    for (const LiveMessage& message : stage.outbox[kMe]) bytes += message.bytes.size();
    return bytes;
  };
  for (int i = 0; i < 500; ++i) {
    stage.token("a");
    stage.clients.flush();
    ASSERT_LE(on_the_way(), 3000u);
  }
  EXPECT_GT(on_the_way(), 2500u);
  // Replies to commands are sent regardless of the window.
  stage.say(kMe, {{"type", "unsubscribe"}, {"session", "b"}});
  EXPECT_EQ(LiveStage::event_of(stage.outbox[kMe].back())["type"], "unsubscribed");
  // Each acknowledged byte makes room for another one.
  const std::size_t received = on_the_way();
  std::exchange(stage.outbox[kMe], {});
  stage.say(kMe, {{"type", "ack"}, {"bytes", received}});
  stage.clients.flush();
  EXPECT_GT(on_the_way(), 2500u);
  EXPECT_LE(on_the_way(), 3000u);
  EXPECT_EQ(stage.clients.counts().lost, 0u);
}

TEST(LiveClientLimits, ThinnedClientGetsLatestDataAndLossCounts) {
  LiveStage stage({.window = 4000});
  stage.state("a", JobState::Running);
  LiveReader thin{stage, 1000};
  thin.heard.holes_allowed = true;
  thin.connect(kAllKinds, {{"thin", "latest"}});
  for (std::uint32_t id = 0; id < 200; ++id) {
    stage.token("a");
    stage.step("a", live_step(id, 30));
    stage.clients.flush();
    if (id % 50 == 49) {
      thin.read(1000);
      thin.acknowledge();
      stage.clients.flush();
    }
  }
  stage.state("a", JobState::Done);
  for (int i = 0; i < 50 && !thin.heard.ended(); ++i) {
    stage.clients.flush();
    thin.read(1000);
    thin.acknowledge();
  }
  ASSERT_TRUE(thin.heard.ended());
  const LiveHeard& heard = thin.heard;
  EXPECT_GT(heard.lost["steps"], 100);
  EXPECT_EQ(heard.tokens.size() + heard.lost["tokens"].get<std::size_t>(), 200u);
  EXPECT_EQ(heard.steps.size() + heard.lost["steps"].get<std::size_t>(), 200u);
  std::size_t complete = 0;
  for (const auto& [id, ops] : heard.ops) complete += ops.complete ? 1 : 0;
  EXPECT_EQ(complete + heard.lost["ops"].get<std::size_t>(), 200u);
  // The newest step is always sent, completely.
  EXPECT_EQ(heard.steps.back()["step"], 199);
  EXPECT_EQ(heard.ops.at(199).end.size(), 30u);
  EXPECT_EQ(stage.clients.counts().lost,
            0u + heard.lost["tokens"].get<std::size_t>() + heard.lost["steps"].get<std::size_t>() +
                heard.lost["ops"].get<std::size_t>() + heard.lost["routing"].get<std::size_t>());
}

TEST(LiveClientLimits, UnrecordedEventsAreBufferedThenCountedAsLost) {
  LiveStage stage({.window = 3000, .session_log_bytes = 10'000});
  stage.has_file = false;
  stage.state("a", JobState::Running);
  for (int i = 0; i < 5; ++i) stage.token("a");  // before the first client
  LiveReader slow{stage, 1000};
  slow.heard.holes_allowed = true;
  slow.connect({"token"}, {{"from", {{"token", 0}}}});
  for (int i = 0; i < 1000; ++i) {
    stage.token("a");
    stage.clients.flush();
    stage.read_one();
  }
  EXPECT_LE(stage.clients.counts().log_bytes, 10'000u);
  stage.state("a", JobState::Done);
  for (int i = 0; i < 100 && !slow.heard.ended(); ++i) {
    slow.read(1000);
    slow.acknowledge();
    stage.clients.flush();
    stage.read_one();
  }
  ASSERT_TRUE(slow.heard.ended());
  EXPECT_GT(slow.heard.lost["tokens"], 500);
  EXPECT_EQ(slow.heard.tokens.size() + slow.heard.lost["tokens"].get<std::size_t>(), 1005u);
  EXPECT_EQ(slow.heard.tokens.back()["index"], 1004);
}

TEST(LiveClientLimits, ViolationsAreReportedThenCloseTheConnection) {
  LiveStage stage({.commands = 20, .commands_per_second = 10});
  stage.clients.opened(kMe);
  stage.events(kMe);
  // Acknowledging bytes that were not sent: first an error, then the connection is closed.
  for (const int code : {0, 1008}) {
    stage.say(kMe, {{"type", "ack"}, {"bytes", 1'000'000}});
    EXPECT_EQ(stage.events(kMe).at(0)["code"], "bad_ack");
    EXPECT_EQ(stage.closed[kMe], code);
  }
  stage.say(kMe, {{"type", "unsubscribe"}, {"session", "a"}});
  EXPECT_TRUE(stage.events(kMe).empty());  // its commands are ignored after the close

  // Nine invalid commands get an error; the tenth closes the connection.
  stage.clients.opened(kOther);
  stage.events(kOther);
  for (int i = 0; i < 9; ++i) {
    stage.clients.said(kOther, "{\"type\": \"shout\"}");
    EXPECT_EQ(stage.events(kOther).at(0)["code"], "bad_command");
  }
  EXPECT_FALSE(stage.closed.contains(kOther));
  stage.clients.said(kOther, "");
  EXPECT_EQ(stage.closed[kOther], 1008);

  // A burst of 20 commands; above 10 per second, reading is paused.
  const ClientId hasty{3};
  stage.clients.opened(hasty);
  stage.events(hasty);
  const json harmless = {{"type", "unsubscribe"}, {"session", "a"}};
  const auto say = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) stage.say(hasty, harmless);
    EXPECT_EQ(stage.types(hasty), std::vector<std::string>(times, "unsubscribed"));
  };
  say(20);
  EXPECT_FALSE(stage.paused.contains(hasty));
  say(1);  // one too many: paused until ten commands are allowed again
  EXPECT_EQ(stage.paused[hasty], std::chrono::milliseconds(1100));
  stage.now += std::exchange(stage.paused[hasty], {});
  say(10);
  EXPECT_EQ(stage.paused[hasty], std::chrono::milliseconds(0));
  say(5);  // already in transit
  EXPECT_EQ(stage.paused[hasty], std::chrono::milliseconds(1500));
  EXPECT_FALSE(stage.closed.contains(hasty));

  // A client that sends commands without reading fills the send queue and is closed.
  const ClientId deaf{4};
  stage.clients.opened(deaf);
  stage.door_is_full = true;
  stage.say(deaf, harmless);
  EXPECT_EQ(stage.closed[deaf], 1008);
}

TEST(LiveClientLimits, StateOfDisconnectedClientsIsReleased) {
  LiveStage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say(kMe, subscribe(kAllKinds));
  for (std::uint32_t id = 0; id < 50; ++id) stage.step("a", live_step(id, 100));
  EXPECT_GT(stage.clients.counts().log_bytes, 10'000u);
  EXPECT_TRUE(stage.clients.wants_looks());
  stage.clients.closed(kMe);
  EXPECT_EQ(stage.clients.counts().log_bytes, 0u);
  EXPECT_EQ(stage.clients.counts().subscriptions, 0u);
  EXPECT_FALSE(stage.clients.wants_looks());
}

}  // namespace
}  // namespace tt::test
