// The rules of api/live.md against a door and an engine that a test plays.
#include "server/live_clients.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "api/live_frames.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr ClientId kMe{1};

// A door with room for as many messages as the test says, and a step in flight.
struct Stage {
  Stage()
      : clients({.send =
                     [this](ClientId, Opcode opcode, std::span<const std::byte> bytes) {
                       if (room == 0) return false;
                       if (room > 0) --room;
                       const auto* text = reinterpret_cast<const char*>(bytes.data());
                       if (opcode == Opcode::Text) {
                         events.push_back(json::parse(text, text + bytes.size()));
                       } else {
                         frames.push_back(*decode_ops_frame(bytes));
                       }
                       return true;
                     },
                 .status = [this](const std::string& id) -> std::optional<JobStatus> {
                   const auto found = statuses.find(id);
                   if (found == statuses.end()) return std::nullopt;
                   return found->second;
                 },
                 .in_flight = [this](const std::string& id,
                                     std::uint32_t from) -> std::optional<StepInFlight> {
                   if (!flight || flight->session != id) return std::nullopt;
                   StepInFlight look = *flight;
                   look.first = from;
                   look.ends.erase(
                       look.ends.begin(),
                       look.ends.begin() + std::min<std::ptrdiff_t>(from, std::ssize(look.ends)));
                   return look;
                 },
                 .n_layers = [](const std::string&) { return 0u; }}) {}

  void state(const std::string& id, JobState job_state) {
    JobStatus status;
    status.id = id;
    status.state = job_state;
    statuses[id] = status;
    clients.state(status);
  }
  void say(const json& message) { clients.said(kMe, message.dump()); }
  std::vector<std::string> types() {
    std::vector<std::string> out;
    for (const json& event : events) out.push_back(event["type"]);
    events.clear();
    return out;
  }

  int room = -1;  // -1: endless
  std::vector<json> events;
  std::vector<OpsFrame> frames;
  std::map<std::string, JobStatus> statuses;
  std::optional<StepInFlight> flight;
  LiveClients clients;
};

Step step_of(std::uint32_t id, std::size_t ops) {
  Step step;
  step.id = StepId{id};
  step.first_op = Ns{1000 * id};
  for (std::size_t i = 0; i < ops; ++i)
    step.op_ends.push_back(Ns{static_cast<std::int64_t>(1000 * id + 10 * (i + 1))});
  return step;
}

StepInFlight part_of(const std::string& session, const Step& step, std::size_t ops) {
  StepInFlight part{.session = session, .step = step.id, .first_op = step.first_op, .ends = {}};
  part.ends.assign(step.op_ends.begin(), step.op_ends.begin() + static_cast<std::ptrdiff_t>(ops));
  return part;
}

// No layers and no accesses: only the ops' times matter here.
const KnownGraph& some_graph() {
  static const KnownGraph graph;
  return graph;
}

const json kOps = {{"type", "subscribe"}, {"session", "a"}, {"kinds", {"op"}}};

TEST(LiveClients, EveryOpArrivesOnceWhateverTheOrderOfLooks) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 dice(seed);
    Stage stage;
    stage.clients.opened(kMe);
    stage.state("a", JobState::Running);
    const auto steps = static_cast<std::uint32_t>(1 + dice() % 6);
    const auto joins_at = static_cast<std::uint32_t>(dice() % steps);
    std::vector<Step> written;
    std::vector<Step> waiting;  // run, but not yet in the file
    const auto write_one = [&] {
      if (waiting.empty()) return;
      stage.clients.step("a", waiting.front().id, &waiting.front(), &some_graph());
      written.push_back(waiting.front());
      waiting.erase(waiting.begin());
    };
    std::uint32_t first_sure = 0;  // steps from here on were written after the subscription
    for (std::uint32_t id = 0; id < steps; ++id) {
      const Step step = step_of(id, dice() % 40);
      for (std::size_t done = 0; done <= step.op_ends.size(); done += 1 + dice() % 10) {
        if (id == joins_at && done == 0) {
          stage.say(kOps);
          first_sure = static_cast<std::uint32_t>(written.size());
        }
        stage.flight = part_of("a", step, done);
        // Now and then there is no room for a while: then looks send nothing.
        stage.room = dice() % 4 == 0 ? 0 : -1;
        if (dice() % 2 == 0) stage.clients.look();
        stage.room = -1;
        if (dice() % 3 == 0) write_one();
      }
      stage.flight.reset();
      waiting.push_back(step);
      if (dice() % 2 == 0) write_one();
    }
    while (!waiting.empty()) write_one();
    stage.state("a", JobState::Done);

    std::map<std::uint32_t, OpsFrame> whole;
    std::uint32_t last = 0;
    for (const OpsFrame& frame : stage.frames) {
      EXPECT_GE(frame.step.v, last);
      last = frame.step.v;
      OpsFrame& to = whole[frame.step.v];
      EXPECT_FALSE(to.complete);
      EXPECT_FALSE(frame.withdrawn);
      ASSERT_EQ(frame.first.v, to.end.size());
      to.begin.insert(to.begin.end(), frame.begin.begin(), frame.begin.end());
      to.end.insert(to.end.end(), frame.end.begin(), frame.end.end());
      to.complete = frame.complete;
    }
    for (const Step& step : written) {
      if (step.id.v < first_sure || step.op_ends.empty()) {
        EXPECT_FALSE(whole.contains(step.id.v));
        continue;
      }
      ASSERT_TRUE(whole.contains(step.id.v)) << step.id.v;
      const OpsFrame& told = whole[step.id.v];
      EXPECT_TRUE(told.complete);
      EXPECT_EQ(told.end, step.op_ends);
      Ns begin = step.first_op;
      for (std::size_t i = 0; i < told.begin.size(); ++i) {
        EXPECT_EQ(told.begin[i], begin);
        begin = told.end[i];
      }
    }
    for (const json& event : stage.events) EXPECT_NE(event["type"], "loss");
  }
}

TEST(LiveClients, WithdrawsWhatTurnedOutOtherwise) {
  Stage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say(kOps);
  const Step seen = step_of(0, 10);
  stage.flight = part_of("a", seen, 8);
  stage.clients.look();
  const Step shorter = step_of(0, 5);
  stage.clients.step("a", StepId{0}, &shorter, &some_graph());
  ASSERT_EQ(stage.frames.size(), 2u);
  EXPECT_TRUE(stage.frames[1].withdrawn);
  EXPECT_EQ(stage.frames[1].first, OpId{0});
  EXPECT_EQ(stage.frames[1].end, shorter.op_ends);

  stage.flight = part_of("a", step_of(1, 10), 8);
  stage.clients.look();
  const Step untimed = step_of(1, 0);
  stage.clients.step("a", StepId{1}, &untimed, &some_graph());
  ASSERT_EQ(stage.frames.size(), 4u);
  EXPECT_TRUE(stage.frames[3].withdrawn);
  EXPECT_TRUE(stage.frames[3].complete);
  EXPECT_TRUE(stage.frames[3].end.empty());
}

TEST(LiveClients, CountsWhatHasNoRoomAndTellsItWhenThereIs) {
  Stage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say({{"type", "subscribe"}, {"session", "a"}, {"kinds", {"token", "op"}}});
  stage.types();
  stage.room = 0;
  for (int i = 0; i < 5; ++i) stage.clients.token("a", Token{}, "x");
  const Step step = step_of(0, 3);
  stage.clients.step("a", StepId{0}, &step, &some_graph());
  EXPECT_TRUE(stage.clients.wants_looks());
  stage.clients.look();
  EXPECT_TRUE(stage.events.empty());
  stage.room = -1;
  stage.clients.look();
  ASSERT_EQ(stage.events.size(), 1u);
  EXPECT_EQ(stage.events[0]["type"], "loss");
  EXPECT_EQ(stage.events[0]["frames"], 6);
  stage.clients.token("a", Token{}, "y");
  EXPECT_EQ(stage.types(), (std::vector<std::string>{"loss", "token"}));

  // The end of the session is lost, too: the subscription stays until that is told.
  stage.room = 0;
  stage.state("a", JobState::Done);
  stage.room = -1;
  stage.clients.look();
  ASSERT_EQ(stage.events.size(), 1u);
  EXPECT_EQ(stage.events[0]["frames"], 7);
  EXPECT_FALSE(stage.clients.wants_looks());
}

TEST(LiveClients, AStarHearsOfEverySessionWithANumberOfItsOwn) {
  Stage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.types();
  stage.say({{"type", "subscribe"}, {"session", "*"}, {"kinds", {"token"}}});
  ASSERT_EQ(stage.events.size(), 3u);
  EXPECT_EQ(stage.events[0]["number"], 0);
  EXPECT_EQ(stage.events[1]["session"], "a");
  EXPECT_EQ(stage.events[1]["number"], 1);
  EXPECT_EQ(stage.events[2]["type"], "state");
  stage.types();
  stage.state("b", JobState::Queued);
  ASSERT_EQ(stage.events.size(), 2u);
  EXPECT_EQ(stage.events[0]["number"], 2);
  stage.types();
  stage.clients.token("b", Token{}, "x");
  stage.clients.token("a", Token{}, "x");
  EXPECT_EQ(stage.types(), (std::vector<std::string>{"token", "token"}));
  stage.say({{"type", "unsubscribe"}, {"session", "*"}});
  stage.types();
  stage.clients.token("a", Token{}, "x");
  stage.state("c", JobState::Queued);
  EXPECT_TRUE(stage.events.empty());
}

TEST(LiveClients, AStateThatWasAskedForIsNotToldBackwards) {
  Stage stage;
  stage.clients.opened(kMe);
  stage.statuses["a"].id = "a";
  stage.statuses["a"].state = JobState::Running;
  stage.types();
  stage.say(kOps);  // before the event that it is queued was handled
  EXPECT_EQ(stage.events.back()["state"], "running");
  stage.types();
  JobStatus queued;
  queued.id = "a";
  stage.clients.state(queued);
  EXPECT_TRUE(stage.events.empty());
}

TEST(LiveClients, AnEndedSessionIsAnsweredAndNotKept) {
  Stage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.state("a", JobState::Done);
  stage.types();
  stage.say(kOps);
  EXPECT_EQ(stage.types(), (std::vector<std::string>{"subscribed", "state"}));
  stage.clients.token("a", Token{}, "x");
  EXPECT_TRUE(stage.events.empty());
  EXPECT_FALSE(stage.clients.wants_looks());
}

TEST(LiveClients, StepsThatNeverArrivedAreCountedAndTheNextGoesOn) {
  Stage stage;
  stage.clients.opened(kMe);
  stage.state("a", JobState::Running);
  stage.say(kOps);
  stage.types();
  stage.clients.missed(2);
  const Step third = step_of(2, 4);
  stage.clients.step("a", StepId{2}, &third, &some_graph());
  EXPECT_EQ(stage.types(), (std::vector<std::string>{"loss"}));
  ASSERT_EQ(stage.frames.size(), 1u);
  EXPECT_EQ(stage.frames[0].end, third.op_ends);
}

}  // namespace
}  // namespace tt
