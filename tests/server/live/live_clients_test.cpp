// Messages to live clients by the rules of api/live.md, with a fake front end, engine and
// session file.
#include "server/live/live_clients.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/server/live/simulated_live_client.h"

namespace tt::test {
namespace {

// Steps begin, are seen in flight and are written; tokens are generated; one client reads
// everything, another connects, reads a little and disconnects at random.
TEST(LiveClients, ReconnectingClientReceivesSameDataAsConnectedOne) {
  int resumed_in_flight = 0, read_from_files = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    // A small log: most of the missed events are only in the file.
    LiveClientsHarness harness({.window = 2000, .log_bytes = seed % 2 == 0 ? 3000u : 16u << 20});
    SimulatedLiveClient connected_client{.harness = harness, .connections = 1000};
    SimulatedLiveClient reconnecting{
        .harness = harness, .connections = 2000, .batches = seed % 3 == 0};
    harness.state("a", JobState::Running);
    const auto random_chance = [&](std::uint32_t n) { return rng() % n == 0; };
    const auto do_random_actions = [&] {
      if (!reconnecting.connected && random_chance(4)) {
        if (harness.in_flight_step)
          resumed_in_flight += reconnecting.transcript.at.is_null() ? 0 : 1;
        reconnecting.connect(kAllKinds, reconnecting.transcript.at.is_null()
                                            ? json{{"from", {{"step", 0}}}}
                                            : json::object());
      }
      if (reconnecting.connected) reconnecting.read(rng() % 4);
      if (reconnecting.connected && random_chance(2)) reconnecting.acknowledge();
      if (reconnecting.connected && random_chance(12)) reconnecting.disconnect();
      connected_client.read(1000);
      connected_client.acknowledge();
      if (random_chance(3)) {
        read_from_files += harness.requests.empty() ? 0 : 1;
        harness.serve_read_request(1 + rng() % 4);
      }
      harness.clients.flush();
      if (random_chance(2)) harness.clients.poll_running_steps();
    };
    connected_client.connect(kAllKinds, {{"from", {{"token", 0}}}});
    const auto steps = static_cast<std::uint32_t>(2 + rng() % 8);
    std::vector<Step> waiting;  // executed, but not yet written
    const auto write_one = [&] {
      if (waiting.empty()) return;
      harness.step("a", waiting.front());
      waiting.erase(waiting.begin());
    };
    for (std::uint32_t id = 0; id < steps; ++id) {
      harness.token("a");
      const Step step = live_step(id, rng() % 40);
      for (std::size_t done = 0; done <= step.op_ends.size(); done += 1 + rng() % 10) {
        harness.in_flight_step = partial_step("a", step, done);
        do_random_actions();
        if (random_chance(3)) write_one();
      }
      harness.in_flight_step.reset();
      waiting.push_back(step);
      if (random_chance(2)) write_one();
      do_random_actions();
    }
    while (!waiting.empty()) write_one();
    harness.file_state = SessionState::Done;
    harness.state("a", JobState::Done);
    for (int i = 0;
         i < 3000 && !(connected_client.transcript.ended() && reconnecting.transcript.ended()); ++i)
      do_random_actions();

    ASSERT_TRUE(connected_client.transcript.ended() && reconnecting.transcript.ended());
    EXPECT_TRUE(connected_client.transcript.lost.empty()) << connected_client.transcript.lost;
    EXPECT_TRUE(reconnecting.transcript.lost.empty()) << reconnecting.transcript.lost;
    EXPECT_TRUE(reconnecting.transcript.same_rows(connected_client.transcript));
    // Both equal the written session.
    ASSERT_EQ(connected_client.transcript.tokens.size(), harness.file_tokens.size());
    ASSERT_EQ(connected_client.transcript.steps.size(), steps);
    for (const Step& step : harness.file_steps) {
      SCOPED_TRACE(step.id.v);
      ASSERT_EQ(connected_client.transcript.ops.contains(step.id.v), !step.op_ends.empty());
      if (!step.op_ends.empty()) {
        const ReceivedOps& received = connected_client.transcript.ops[step.id.v];
        EXPECT_TRUE(received.complete);
        EXPECT_EQ(received.end, step.op_ends);
        Ns begin = step.first_op;
        for (std::size_t i = 0; i < received.begin.size(); ++i) {
          EXPECT_EQ(received.begin[i], begin);
          begin = received.end[i];
        }
      }
      EXPECT_EQ(connected_client.transcript.routing[step.id.v],
                (std::vector<ReceivedRoute>{{0, step.id.v, step.id.v % 4, 0, -1.0F},
                                            {0, step.id.v, 7, 1, -1.0F}}));
    }
  }
  EXPECT_GT(resumed_in_flight, 50);
  EXPECT_GT(read_from_files, 1000);
}

TEST(LiveClients, SubscriptionStartsAtNextEventOrRequestedPosition) {
  LiveClientsHarness harness;
  harness.state("a", JobState::Running);
  for (std::uint32_t id = 0; id < 3; ++id) {
    harness.token("a");
    harness.step("a", live_step(id, 2));
  }
  harness.clients.opened(kMe);
  harness.send_command(kMe, subscribe({"token", "op"}));
  json subscribed = harness.events(kMe).at(1);
  EXPECT_EQ(subscribed["from"], (json{{"token", 3}, {"step", 3}, {"op", 0}, {"routing", 0}}));
  EXPECT_EQ(subscribed["number"], 1);
  EXPECT_EQ(subscribed["thin"], "none");

  // A kind added later starts at the next event; `from` sets the start. The number stays.
  harness.token("a");
  harness.send_command(kMe, subscribe({"step"}, {{"thin", "latest"}}));
  subscribed = harness.events(kMe).at(0);
  EXPECT_EQ(subscribed["from"]["step"], 3);
  EXPECT_EQ(subscribed["thin"], "latest");
  harness.send_command(kMe, subscribe({"token"}, {{"from", {{"token", 1}}}}));
  subscribed = harness.events(kMe).at(0);
  EXPECT_EQ(subscribed["from"], (json{{"token", 1}, {"step", 0}, {"op", 0}, {"routing", 0}}));
  EXPECT_EQ(subscribed["number"], 1);
  harness.clients.flush();
  harness.serve_read_request(100);
  harness.clients.flush();
  std::vector<std::uint32_t> received;
  for (const json& event : harness.events(kMe))
    if (event["type"] == "token") received.push_back(event["index"]);
  EXPECT_EQ(received, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(LiveClients, ChangesOfTheListAreToldOnceToThoseWhoAsked) {
  LiveClientsHarness harness;
  harness.clients.opened(kMe, {.list = true});
  harness.clients.opened(kOther);
  const auto lists = [&](ClientId id) {
    harness.clients.flush();
    return std::ranges::count(harness.events(id), "list", [](const json& e) { return e["type"]; });
  };
  EXPECT_EQ(lists(kMe), 0);
  harness.clients.list_changed();
  harness.clients.list_changed();
  EXPECT_EQ(lists(kMe), 1);
  EXPECT_EQ(lists(kMe), 0);
  EXPECT_EQ(lists(kOther), 0);
}

TEST(LiveClients, WithdrawsOpsThatChanged) {
  LiveClientsHarness harness;
  harness.clients.opened(kMe);
  harness.state("a", JobState::Running);
  harness.send_command(kMe, subscribe({"op"}));
  LiveTranscript transcript;
  const auto take = [&](ClientId id) {
    for (const LiveMessage& message : std::exchange(harness.outbox[id], {})) {
      if (message.opcode == Opcode::Binary)
        transcript.add_frame(message.bytes);
      else
        transcript.add(LiveClientsHarness::event_of(message));
    }
  };
  const auto write = [&](const Step& step) {
    harness.step("a", step);
    harness.clients.flush();
    take(kMe);
  };
  // The written step has fewer ops, other times or no ops: the in-flight ops are withdrawn.
  harness.in_flight_step = partial_step("a", live_step(0, 10), 8);
  harness.clients.poll_running_steps();
  write(live_step(0, 5));
  EXPECT_EQ(transcript.withdrawn, 1);
  EXPECT_EQ(transcript.ops[0].end, live_step(0, 5).op_ends);

  harness.in_flight_step = partial_step("a", live_step(1, 10), 8);
  harness.clients.poll_running_steps();
  Step moved = live_step(1, 10);
  for (Ns& end : moved.op_ends) end.v += 3;
  write(moved);
  EXPECT_EQ(transcript.withdrawn, 2);
  EXPECT_EQ(transcript.ops[1].end, moved.op_ends);

  harness.in_flight_step = partial_step("a", live_step(2, 10), 8);
  harness.clients.poll_running_steps();
  write(live_step(2, 0));
  EXPECT_EQ(transcript.withdrawn, 3);
  EXPECT_TRUE(transcript.ops[2].complete);
  EXPECT_TRUE(transcript.ops[2].end.empty());

  // On a new connection: the times of a step whose graph was being learned may have been
  // written twice, so they are withdrawn and sent again; those of other steps are kept.
  for (const Timing timing : {Timing::Learned, Timing::Fast}) {
    const auto id = static_cast<std::uint32_t>(harness.file_steps.size());
    harness.in_flight_step = partial_step("a", live_step(id, 10), 4);
    harness.clients.poll_running_steps();
    take(kMe);
    EXPECT_EQ(transcript.ops[id].end.size(), 4u);
    const int before = transcript.withdrawn;
    harness.clients.opened(kOther);
    harness.send_command(kOther, subscribe({"op"}, {{"from", transcript.at}}));
    Step written = live_step(id, 10);
    written.timing = timing;
    harness.step("a", written);
    harness.clients.flush();
    take(kOther);
    EXPECT_EQ(transcript.withdrawn - before, timing == Timing::Learned ? 1 : 0);
    EXPECT_EQ(transcript.ops[id].end, written.op_ends);
    harness.clients.closed(kOther);
    harness.outbox.clear();
    transcript.number = 1;
  }
}

TEST(LiveClients, LargeStepIsSplitIntoFrames) {
  LiveClientsHarness harness;
  harness.clients.opened(kMe);
  harness.state("a", JobState::Running);
  harness.send_command(kMe, subscribe(kAllKinds));
  Step step = live_step(0, 5000);
  step.n_tokens = 3000;
  step.slots[0].ints.assign(6000, 1);
  harness.step("a", step);
  harness.clients.flush();
  LiveTranscript transcript;
  std::size_t frames = 0;
  for (const LiveMessage& message : harness.outbox[kMe]) {
    if (message.opcode == Opcode::Text) {
      transcript.add(LiveClientsHarness::event_of(message));
      continue;
    }
    ++frames;
    EXPECT_LE(message.bytes.size(), kMaxFrameBytes);
    transcript.add_frame(message.bytes);
  }
  EXPECT_EQ(frames, 6u);
  EXPECT_EQ(transcript.ops[0].end, step.op_ends);
  EXPECT_TRUE(transcript.ops[0].complete);
  EXPECT_EQ(transcript.routing[0].size(), 6000u);
}

TEST(LiveClients, BatchHoldsTheTextMessagesOfATurn) {
  LiveClientsHarness harness;
  harness.state("a", JobState::Running);
  harness.clients.opened(kMe, {.batches = true});
  harness.send_command(kMe, subscribe(kAllKinds));
  for (std::uint32_t id = 0; id < 3; ++id) {
    harness.token("a");
    harness.step("a", live_step(id, 4));
  }
  harness.clients.flush();
  std::vector<std::vector<std::string>> turns;  // types; a frame ends a batch
  std::uint64_t received = 0;
  for (const LiveMessage& message : harness.outbox[kMe]) {
    received += message.bytes.size();
    turns.emplace_back();
    if (message.opcode == Opcode::Binary) {
      turns.back().emplace_back("frame");
    } else {
      for (const json& event : LiveClientsHarness::event_of(message))
        turns.back().push_back(event["type"]);
    }
  }
  const std::vector<std::string> frame{"frame"};
  EXPECT_EQ(turns, (std::vector<std::vector<std::string>>{{"hello", "subscribed", "state", "token"},
                                                          frame,
                                                          frame,
                                                          {"step", "token"},
                                                          frame,
                                                          frame,
                                                          {"step", "token"},
                                                          frame,
                                                          frame,
                                                          {"step"}}));
  // The window counts the bytes of the batches.
  harness.outbox[kMe].clear();
  harness.send_command(kMe, {{"type", "ack"}, {"bytes", received}});
  harness.clients.flush();
  EXPECT_TRUE(harness.events(kMe).empty());
}

TEST(LiveClients, DamagedRowIsReportedAsLoss) {
  LiveClientsHarness harness;
  harness.state("a", JobState::Running);
  for (std::uint32_t id = 0; id < 3; ++id) harness.step("a", live_step(id, 4));
  harness.clients.opened(kMe);
  harness.send_command(kMe, subscribe({"step", "op"}, {{"from", json::object()}}));
  harness.clients.flush();
  ASSERT_EQ(harness.requests.size(), 1u);
  const BackfillRequest request = harness.requests.front();
  BackfillBatch batch{.client = kMe, .request_id = request.request_id, .session = "a"};
  const auto record = [&](std::uint32_t id) {
    return std::make_shared<StepRecord>("a", live_step(id, 4), routed_graph(), 1u);
  };
  batch.records = {record(0), DamagedRecord{.is_step = true, .index = 1}, record(2)};
  harness.clients.batch(std::move(batch));
  harness.clients.flush();
  EXPECT_EQ(harness.types(kMe),
            (std::vector<std::string>{"hello", "subscribed", "state", "step", "loss", "step"}));
}

TEST(LiveClients, HandlesEndedAndUnknownSessions) {
  LiveClientsHarness harness;
  for (std::uint32_t id = 0; id < 2; ++id) {
    harness.file_tokens.push_back(Token{.index = id, .text = {}});
    harness.file_steps.push_back(live_step(id, 3));
  }
  harness.file_state = SessionState::Recovered;
  harness.clients.opened(kMe);
  harness.events(kMe);
  harness.send_command(kMe, subscribe({"token", "step"}, {{"from", {{"token", 1}}}}));
  for (int i = 0; i < 10; ++i) {
    harness.serve_read_request();
    harness.clients.flush();
  }
  const auto events = harness.events(kMe);
  std::vector<std::string> types;
  for (const json& event : events) types.push_back(event["type"]);
  std::ranges::sort(types);
  EXPECT_EQ(types, (std::vector<std::string>{"state", "step", "step", "subscribed", "token"}));
  EXPECT_EQ(events.front()["type"], "subscribed");
  EXPECT_EQ(events.back()["state"], "recovered");
  EXPECT_EQ(harness.clients.counts().subscriptions, 0u);

  // Without `from` only the final state is sent.
  harness.send_command(kMe, subscribe({"token", "step", "op"}));
  for (int i = 0; i < 10; ++i) {
    harness.serve_read_request();
    harness.clients.flush();
  }
  EXPECT_EQ(harness.types(kMe), (std::vector<std::string>{"subscribed", "state"}));

  harness.has_file = false;
  harness.send_command(kMe, subscribe({"token"}));
  harness.serve_read_request();
  const auto rejected = harness.events(kMe);
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0]["code"], "not_live");
  EXPECT_EQ(rejected[0]["session"], "a");

  // A session that another process is recording.
  harness.has_file = true;
  harness.file_state = SessionState::Running;
  harness.send_command(kMe, subscribe({"token"}, {{"from", json::object()}}));
  for (int i = 0; i < 10; ++i) {
    harness.serve_read_request();
    harness.clients.flush();
  }
  EXPECT_EQ(harness.types(kMe), (std::vector<std::string>{"subscribed", "token", "token"}))
      << "goes on when the file grows (FolderWatch)";
}

TEST(LiveClients, WildcardSubscribesToEverySession) {
  LiveClientsHarness harness({.subscriptions = 3});
  harness.clients.opened(kMe);
  harness.state("a", JobState::Running);
  harness.events(kMe);
  harness.send_command(kMe, {{"type", "subscribe"}, {"session", "*"}, {"kinds", {"token"}}});
  harness.clients.flush();
  auto events = harness.events(kMe);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["number"], 0);
  EXPECT_FALSE(events[0].contains("from"));
  EXPECT_EQ(events[1]["session"], "a");
  EXPECT_EQ(events[1]["number"], 1);
  EXPECT_EQ(events[2]["type"], "state");
  harness.state("b", JobState::Queued);
  harness.clients.flush();
  events = harness.events(kMe);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["number"], 2);
  harness.clients.token("b", Token{}, "x");
  harness.clients.token("a", Token{}, "x");
  harness.clients.flush();
  EXPECT_EQ(harness.types(kMe), (std::vector<std::string>{"token", "token"}));
  // Sessions above the limit are counted as lost.
  for (const char* id : {"c", "d", "e"}) harness.state(id, JobState::Queued);
  harness.clients.flush();
  events = harness.events(kMe);
  const auto lost = std::ranges::find_if(events, [](const json& e) { return e["type"] == "loss"; });
  ASSERT_NE(lost, events.end());
  EXPECT_EQ((*lost)["session"], "*");
  EXPECT_EQ((*lost)["sessions"], 2);
  harness.send_command(kMe, {{"type", "subscribe"}, {"session", "d"}, {"kinds", {"token"}}});
  EXPECT_EQ(harness.events(kMe).back()["code"], "too_many");

  harness.send_command(kMe, {{"type", "unsubscribe"}, {"session", "*"}});
  EXPECT_EQ(harness.types(kMe), (std::vector<std::string>{"unsubscribed"}));
  harness.clients.token("a", Token{.index = 1, .text = {}}, "x");
  harness.state("f", JobState::Queued);
  harness.clients.flush();
  EXPECT_TRUE(harness.events(kMe).empty());
}

TEST(LiveClients, StateAndProgressNeverGoBackwards) {
  LiveClientsHarness harness({.window = 400});
  harness.clients.opened(kMe);
  harness.statuses["a"].id = "a";
  harness.statuses["a"].state = JobState::Running;
  harness.send_command(kMe, subscribe({"progress"}));  // before the queued event is handled
  harness.clients.flush();
  EXPECT_EQ(harness.events(kMe).back()["state"], "running");
  JobStatus status;
  status.id = "a";
  harness.clients.state(status);
  for (std::uint32_t done = 1; done <= 50; ++done) {
    status.prompt_done = done;
    harness.clients.progress(status);
    harness.clients.flush();
  }
  std::exchange(harness.outbox[kMe], {});
  harness.send_command(kMe, {{"type", "ack"}, {"bytes", 300}});
  harness.clients.flush();
  for (const json& event : harness.events(kMe)) {
    EXPECT_EQ(event["type"], "progress");
    EXPECT_TRUE(event["prompt_done"] == 50 || event["prompt_done"] < 5) << event;
  }
}

}  // namespace
}  // namespace tt::test
