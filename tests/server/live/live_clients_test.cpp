// Messages to live clients by the rules of api/live.md, with a fake front end, engine and
// session file.
#include "server/live/live_clients.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/server/live/live_reader.h"

namespace tt::test {
namespace {

// Steps begin, are seen in flight and are written; tokens are generated; one client reads
// everything, another connects, reads a little and disconnects at random.
TEST(LiveClients, ReconnectingClientReceivesSameDataAsConnectedOne) {
  int resumed_in_flight = 0, read_from_files = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 dice(seed);
    // A small log: most of the missed events are only in the file.
    LiveStage stage({.window = 2000, .log_bytes = seed % 2 == 0 ? 3000u : 16u << 20});
    LiveReader steady{stage, 1000}, restless{stage, 2000};
    stage.state("a", JobState::Running);
    const auto one_in = [&](std::uint32_t n) { return dice() % n == 0; };
    const auto happen = [&] {
      if (!restless.connected && one_in(4)) {
        if (stage.flight) resumed_in_flight += restless.heard.at.is_null() ? 0 : 1;
        restless.connect(kAllKinds, restless.heard.at.is_null() ? json{{"from", {{"step", 0}}}}
                                                                : json::object());
      }
      if (restless.connected) restless.read(dice() % 4);
      if (restless.connected && one_in(2)) restless.acknowledge();
      if (restless.connected && one_in(12)) restless.vanish();
      steady.read(1000);
      steady.acknowledge();
      if (one_in(3)) {
        read_from_files += stage.requests.empty() ? 0 : 1;
        stage.read_one(1 + dice() % 4);
      }
      stage.clients.flush();
      if (one_in(2)) stage.clients.look();
    };
    steady.connect(kAllKinds, {{"from", {{"token", 0}}}});
    const auto steps = static_cast<std::uint32_t>(2 + dice() % 8);
    std::vector<Step> waiting;  // executed, but not yet written
    const auto write_one = [&] {
      if (waiting.empty()) return;
      stage.step("a", waiting.front());
      waiting.erase(waiting.begin());
    };
    for (std::uint32_t id = 0; id < steps; ++id) {
      stage.token("a");
      const Step step = live_step(id, dice() % 40);
      for (std::size_t done = 0; done <= step.op_ends.size(); done += 1 + dice() % 10) {
        stage.flight = part_of("a", step, done);
        happen();
        if (one_in(3)) write_one();
      }
      stage.flight.reset();
      waiting.push_back(step);
      if (one_in(2)) write_one();
      happen();
    }
    while (!waiting.empty()) write_one();
    stage.file_state = SessionState::Done;
    stage.state("a", JobState::Done);
    for (int i = 0; i < 3000 && !(steady.heard.ended() && restless.heard.ended()); ++i) happen();

    ASSERT_TRUE(steady.heard.ended() && restless.heard.ended());
    EXPECT_TRUE(steady.heard.lost.empty()) << steady.heard.lost;
    EXPECT_TRUE(restless.heard.lost.empty()) << restless.heard.lost;
    EXPECT_TRUE(restless.heard.same_rows(steady.heard));
    // Both equal the written session.
    ASSERT_EQ(steady.heard.tokens.size(), stage.file_tokens.size());
    ASSERT_EQ(steady.heard.steps.size(), steps);
    for (const Step& step : stage.file_steps) {
      SCOPED_TRACE(step.id.v);
      ASSERT_EQ(steady.heard.ops.contains(step.id.v), !step.op_ends.empty());
      if (!step.op_ends.empty()) {
        const HeardOps& told = steady.heard.ops[step.id.v];
        EXPECT_TRUE(told.complete);
        EXPECT_EQ(told.end, step.op_ends);
        Ns begin = step.first_op;
        for (std::size_t i = 0; i < told.begin.size(); ++i) {
          EXPECT_EQ(told.begin[i], begin);
          begin = told.end[i];
        }
      }
      EXPECT_EQ(steady.heard.routing[step.id.v],
                (std::vector<HeardRoute>{{0, step.id.v, step.id.v % 4, 0, -1.0F},
                                         {0, step.id.v, 7, 1, -1.0F}}));
    }
  }
  EXPECT_GT(resumed_in_flight, 50);
  EXPECT_GT(read_from_files, 1000);
}

TEST(LiveClients, SubscriptionStartsAtNextEventOrRequestedPosition) {
  LiveStage stage;
  stage.state("a", JobState::Running);
  for (std::uint32_t id = 0; id < 3; ++id) {
    stage.token("a");
    stage.step("a", live_step(id, 2));
  }
  stage.clients.opened(kMe);
  stage.say(kMe, subscribe({"token", "op"}));
  json subscribed = stage.events(kMe).at(1);
  EXPECT_EQ(subscribed["from"], (json{{"token", 3}, {"step", 3}, {"op", 0}, {"routing", 0}}));
  EXPECT_EQ(subscribed["number"], 1);
  EXPECT_EQ(subscribed["thin"], "none");

  // A kind added later starts at the next event; `from` sets the start. The number stays.
  stage.token("a");
  stage.say(kMe, subscribe({"step"}, {{"thin", "latest"}}));
  subscribed = stage.events(kMe).at(0);
  EXPECT_EQ(subscribed["from"]["step"], 3);
  EXPECT_EQ(subscribed["thin"], "latest");
  stage.say(kMe, subscribe({"token"}, {{"from", {{"token", 1}}}}));
  subscribed = stage.events(kMe).at(0);
  EXPECT_EQ(subscribed["from"], (json{{"token", 1}, {"step", 0}, {"op", 0}, {"routing", 0}}));
  EXPECT_EQ(subscribed["number"], 1);
  stage.clients.flush();
  stage.read_one(100);
  stage.clients.flush();
  std::vector<std::uint32_t> told;
  for (const json& event : stage.events(kMe))
    if (event["type"] == "token") told.push_back(event["index"]);
  EXPECT_EQ(told, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(LiveClients, WithdrawsOpsThatChanged) {
  LiveStage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say(kMe, subscribe({"op"}));
  LiveHeard heard;
  const auto take = [&](ClientId id) {
    for (const LiveMessage& message : std::exchange(stage.outbox[id], {})) {
      if (message.opcode == Opcode::Binary)
        heard.add_frame(message.bytes);
      else
        heard.add(LiveStage::event_of(message));
    }
  };
  const auto write = [&](const Step& step) {
    stage.step("a", step);
    stage.clients.flush();
    take(kMe);
  };
  // The written step has fewer ops, other times or no ops: the in-flight ops are withdrawn.
  stage.flight = part_of("a", live_step(0, 10), 8);
  stage.clients.look();
  write(live_step(0, 5));
  EXPECT_EQ(heard.withdrawn, 1);
  EXPECT_EQ(heard.ops[0].end, live_step(0, 5).op_ends);

  stage.flight = part_of("a", live_step(1, 10), 8);
  stage.clients.look();
  Step moved = live_step(1, 10);
  for (Ns& end : moved.op_ends) end.v += 3;
  write(moved);
  EXPECT_EQ(heard.withdrawn, 2);
  EXPECT_EQ(heard.ops[1].end, moved.op_ends);

  stage.flight = part_of("a", live_step(2, 10), 8);
  stage.clients.look();
  write(live_step(2, 0));
  EXPECT_EQ(heard.withdrawn, 3);
  EXPECT_TRUE(heard.ops[2].complete);
  EXPECT_TRUE(heard.ops[2].end.empty());

  // On a new connection: the times of a step whose graph was being learned may have been
  // written twice, so they are withdrawn and sent again; those of other steps are kept.
  for (const Timing timing : {Timing::Learned, Timing::Fast}) {
    const auto id = static_cast<std::uint32_t>(stage.file_steps.size());
    stage.flight = part_of("a", live_step(id, 10), 4);
    stage.clients.look();
    take(kMe);
    EXPECT_EQ(heard.ops[id].end.size(), 4u);
    const int before = heard.withdrawn;
    stage.clients.opened(kOther);
    stage.say(kOther, subscribe({"op"}, {{"from", heard.at}}));
    Step written = live_step(id, 10);
    written.timing = timing;
    stage.step("a", written);
    stage.clients.flush();
    take(kOther);
    EXPECT_EQ(heard.withdrawn - before, timing == Timing::Learned ? 1 : 0);
    EXPECT_EQ(heard.ops[id].end, written.op_ends);
    stage.clients.closed(kOther);
    stage.outbox.clear();
    heard.number = 1;
  }
}

TEST(LiveClients, LargeStepIsSplitIntoFrames) {
  LiveStage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say(kMe, subscribe(kAllKinds));
  Step step = live_step(0, 5000);
  step.n_tokens = 3000;
  step.slots[0].ints.assign(6000, 1);
  stage.step("a", step);
  stage.clients.flush();
  LiveHeard heard;
  std::size_t frames = 0;
  for (const LiveMessage& message : stage.outbox[kMe]) {
    if (message.opcode == Opcode::Text) {
      heard.add(LiveStage::event_of(message));
      continue;
    }
    ++frames;
    EXPECT_LE(message.bytes.size(), kMostFrameBytes);
    heard.add_frame(message.bytes);
  }
  EXPECT_EQ(frames, 6u);
  EXPECT_EQ(heard.ops[0].end, step.op_ends);
  EXPECT_TRUE(heard.ops[0].complete);
  EXPECT_EQ(heard.routing[0].size(), 6000u);
}

TEST(LiveClients, DamagedRowIsReportedAsLoss) {
  LiveStage stage;
  stage.state("a", JobState::Running);
  for (std::uint32_t id = 0; id < 3; ++id) stage.step("a", live_step(id, 4));
  stage.clients.opened(kMe);
  stage.say(kMe, subscribe({"step", "op"}, {{"from", json::object()}}));
  stage.clients.flush();
  ASSERT_EQ(stage.requests.size(), 1u);
  const ArchiveRequest request = stage.requests.front();
  ArchivePiece piece{.client = kMe, .ticket = request.ticket, .session = "a"};
  const auto record = [&](std::uint32_t id) {
    return std::make_shared<StepRecord>("a", live_step(id, 4), routed_graph(), 1u);
  };
  piece.records = {record(0), DamagedRecord{.is_step = true, .index = 1}, record(2)};
  stage.clients.piece(std::move(piece));
  stage.clients.flush();
  EXPECT_EQ(stage.types(kMe),
            (std::vector<std::string>{"hello", "subscribed", "state", "step", "loss", "step"}));
}

TEST(LiveClients, HandlesEndedAndUnknownSessions) {
  LiveStage stage;
  for (std::uint32_t id = 0; id < 2; ++id) {
    stage.file_tokens.push_back(Token{.index = id, .text = {}});
    stage.file_steps.push_back(live_step(id, 3));
  }
  stage.file_state = SessionState::Recovered;
  stage.clients.opened(kMe);
  stage.events(kMe);
  stage.say(kMe, subscribe({"token", "step"}, {{"from", {{"token", 1}}}}));
  for (int i = 0; i < 10; ++i) {
    stage.read_one();
    stage.clients.flush();
  }
  const auto events = stage.events(kMe);
  std::vector<std::string> types;
  for (const json& event : events) types.push_back(event["type"]);
  std::ranges::sort(types);
  EXPECT_EQ(types, (std::vector<std::string>{"state", "step", "step", "subscribed", "token"}));
  EXPECT_EQ(events.front()["type"], "subscribed");
  EXPECT_EQ(events.back()["state"], "recovered");
  EXPECT_EQ(stage.clients.counts().subscriptions, 0u);

  // Without `from` only the final state is sent.
  stage.say(kMe, subscribe({"token", "step", "op"}));
  for (int i = 0; i < 10; ++i) {
    stage.read_one();
    stage.clients.flush();
  }
  EXPECT_EQ(stage.types(kMe), (std::vector<std::string>{"subscribed", "state"}));

  stage.has_file = false;
  stage.say(kMe, subscribe({"token"}));
  stage.read_one();
  const auto refused = stage.events(kMe);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0]["code"], "not_live");
  EXPECT_EQ(refused[0]["session"], "a");

  // A session that another process is recording.
  stage.has_file = true;
  stage.file_state = SessionState::Running;
  stage.say(kMe, subscribe({"token"}, {{"from", json::object()}}));
  for (int i = 0; i < 10; ++i) {
    stage.read_one();
    stage.clients.flush();
  }
  EXPECT_EQ(stage.types(kMe), (std::vector<std::string>{"subscribed", "token", "token", "error"}));
}

TEST(LiveClients, WildcardSubscribesToEverySession) {
  LiveStage stage({.subscriptions = 3});
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.events(kMe);
  stage.say(kMe, {{"type", "subscribe"}, {"session", "*"}, {"kinds", {"token"}}});
  stage.clients.flush();
  auto events = stage.events(kMe);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["number"], 0);
  EXPECT_FALSE(events[0].contains("from"));
  EXPECT_EQ(events[1]["session"], "a");
  EXPECT_EQ(events[1]["number"], 1);
  EXPECT_EQ(events[2]["type"], "state");
  stage.state("b", JobState::Queued);
  stage.clients.flush();
  events = stage.events(kMe);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["number"], 2);
  stage.clients.token("b", Token{}, "x");
  stage.clients.token("a", Token{}, "x");
  stage.clients.flush();
  EXPECT_EQ(stage.types(kMe), (std::vector<std::string>{"token", "token"}));
  // Sessions above the limit are counted as lost.
  for (const char* id : {"c", "d", "e"}) stage.state(id, JobState::Queued);
  stage.clients.flush();
  events = stage.events(kMe);
  const auto lost = std::ranges::find_if(events, [](const json& e) { return e["type"] == "loss"; });
  ASSERT_NE(lost, events.end());
  EXPECT_EQ((*lost)["session"], "*");
  EXPECT_EQ((*lost)["sessions"], 2);
  stage.say(kMe, {{"type", "subscribe"}, {"session", "d"}, {"kinds", {"token"}}});
  EXPECT_EQ(stage.events(kMe).back()["code"], "too_many");

  stage.say(kMe, {{"type", "unsubscribe"}, {"session", "*"}});
  EXPECT_EQ(stage.types(kMe), (std::vector<std::string>{"unsubscribed"}));
  stage.clients.token("a", Token{.index = 1, .text = {}}, "x");
  stage.state("f", JobState::Queued);
  stage.clients.flush();
  EXPECT_TRUE(stage.events(kMe).empty());
}

TEST(LiveClients, StateAndProgressNeverGoBackwards) {
  LiveStage stage({.window = 400});
  stage.clients.opened(kMe);
  stage.statuses["a"].id = "a";
  stage.statuses["a"].state = JobState::Running;
  stage.say(kMe, subscribe({"progress"}));  // before the queued event is handled
  stage.clients.flush();
  EXPECT_EQ(stage.events(kMe).back()["state"], "running");
  JobStatus status;
  status.id = "a";
  stage.clients.state(status);
  for (std::uint32_t done = 1; done <= 50; ++done) {
    status.prompt_done = done;
    stage.clients.progress(status);
    stage.clients.flush();
  }
  std::exchange(stage.outbox[kMe], {});
  stage.say(kMe, {{"type", "ack"}, {"bytes", 300}});
  stage.clients.flush();
  for (const json& event : stage.events(kMe)) {
    EXPECT_EQ(event["type"], "progress");
    EXPECT_TRUE(event["prompt_done"] == 50 || event["prompt_done"] < 5) << event;
  }
}

}  // namespace
}  // namespace tt::test
