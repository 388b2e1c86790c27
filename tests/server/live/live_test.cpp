// The live API: the data a WebSocket client receives equals the session file and the REST
// responses, whatever the client does in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "analysis/experts/routing.h"
#include "tests/server/support/test_server.h"
#include "tests/support/places.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

class Live : public ::testing::Test {
 protected:
  Live() { need_backends(); }
};

const json kAllKinds = {"token", "step", "op", "routing", "progress"};

json prompt_of_tokens(int count) {
  json tokens = json::array();
  for (int i = 0; i < count; ++i) tokens.push_back(300 + i * 7 % 400);
  return tokens;
}

json long_answer(int tokens) {
  return {{"prompt", "Once"}, {"max_tokens", tokens}, {"ignore_eos", true}, {"temperature", 0}};
}

// Compares with the session file from `first_step` on, read independently of the server.
void expect_as_recorded(const TestServer& server, const std::string& id, const LiveHeard& heard,
                        std::uint32_t first_step = 0) {
  const auto reader = server.sessions.open(id);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  const std::uint32_t steps = *reader->step_count();
  ASSERT_GT(steps, first_step);
  for (std::uint32_t i = first_step; i < steps; ++i) {
    SCOPED_TRACE(i);
    const Step step = *reader->step(StepId{i});
    ASSERT_EQ(heard.ops.contains(i), !step.op_ends.empty());
    if (!step.op_ends.empty()) {
      const HeardOps& told = heard.ops.at(i);
      EXPECT_TRUE(told.complete);
      ASSERT_EQ(told.end, step.op_ends);
      ASSERT_EQ(told.begin.front(), step.first_op);
      ASSERT_TRUE(std::equal(told.begin.begin() + 1, told.begin.end(), step.op_ends.begin()));
    }
    if (step.graph ==
        TemplateId{}) {  // not recorded because the disk was too slow: only its tokens are
      EXPECT_FALSE(heard.routing.contains(i));
      continue;
    }
    std::vector<HeardRoute> routes;
    const auto graph = *reader->graph(step.graph);
    for (std::size_t s = 0; s < graph->slots.size(); ++s) {
      if (graph->slots[s].kind != SlotKind::Experts) continue;
      const auto used = static_cast<std::size_t>(graph->tensor(graph->slots[s].tensor).ne[0]);
      const auto& experts = step.slots[s].ints;
      // The last layer of a prompt computes its last token only.
      const auto skipped = static_cast<std::uint32_t>(step.n_tokens - experts.size() / used);
      const auto scores = std::ranges::find_if(graph->slots, [&](const Slot& slot) {
        return slot.kind == SlotKind::ExpertScores && slot.layer == graph->slots[s].layer;
      });
      ASSERT_NE(scores, graph->slots.end());
      const auto& weights = step.slots[static_cast<std::size_t>(scores - graph->slots.begin())];
      for (std::size_t k = 0; k < experts.size(); ++k) {
        routes.emplace_back(graph->slots[s].layer.v,
                            step.first_token + skipped + static_cast<std::uint32_t>(k / used),
                            static_cast<std::uint32_t>(experts[k]),
                            static_cast<std::uint32_t>(k % used), weights.floats[k]);
      }
    }
    ASSERT_EQ(heard.routing.contains(i), !routes.empty());
    if (!routes.empty()) {
      ASSERT_EQ(heard.routing.at(i), routes);
    }
  }
}

// Compares with the tokens and steps that REST returns.
void expect_as_answered(TestServer& server, const std::string& id, const LiveHeard& heard) {
  const json tokens = server.get("/api/v1/sessions/" + id + "/tokens?limit=10000").body["tokens"];
  ASSERT_EQ(heard.tokens.size(), tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (const char* field : {"index", "id", "position", "generated", "reused"})
      ASSERT_EQ(heard.tokens[i][field], tokens[i][field]) << i << ' ' << field;
  }
  EXPECT_EQ(heard.text, server.state_of(id)["text"].get<std::string>());
  const json steps = server.get("/api/v1/sessions/" + id + "/steps?limit=10000").body["steps"];
  ASSERT_EQ(heard.steps.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    json told = heard.steps[i];
    told.erase("session");
    ASSERT_EQ(told, steps[i]);
  }
}

TEST_F(Live, DeliversTokensStepsAndOpsExactlyOnce) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  LiveListener client(server.port);
  const json hello = client.read_event();
  EXPECT_EQ(hello["type"], "hello");
  EXPECT_EQ(hello["protocol"], 2);
  EXPECT_EQ(hello["window"], 512 << 10);
  client.say({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  EXPECT_EQ(client.read_event()["number"], 0);

  // A prompt long enough to be sampled while it runs.
  const std::string id = server.generate({{"tokens", prompt_of_tokens(900)},
                                          {"max_tokens", 30},
                                          {"ignore_eos", true},
                                          {"temperature", 0}});
  LiveHeard heard;
  client.hear_to_the_end(id, heard);
  EXPECT_EQ(heard.states.back(), "done");
  EXPECT_TRUE(heard.lost.empty());
  EXPECT_GT(heard.partial_frames, 0) << "the prompt was not sampled while it ran";
  EXPECT_FALSE(heard.progress.empty());
  expect_as_recorded(server, id, heard);
  expect_as_answered(server, id, heard);

  // Again, from the file.
  LiveListener late(server.port);
  late.say(
      {{"type", "subscribe"}, {"session", id}, {"kinds", kAllKinds}, {"from", json::object()}});
  LiveHeard again;
  late.hear_to_the_end(id, again);
  EXPECT_TRUE(again.same_rows(heard));
}

TEST_F(Live, LateClientStartsWithCompleteStep) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate(long_answer(400));
  ASSERT_TRUE(
      eventually([&] { return server.get("/api/v1/sessions/" + id).body.value("steps", 0) > 20; }));
  LiveListener client(server.port);
  client.say({{"type", "subscribe"}, {"session", id}, {"kinds", {"op", "routing"}}});
  LiveHeard heard;
  client.hear_to_the_end(id, heard);
  ASSERT_FALSE(heard.ops.empty());
  EXPECT_GT(heard.ops.begin()->first, 10u);
  EXPECT_TRUE(heard.steps.empty());   // not subscribed
  EXPECT_TRUE(heard.tokens.empty());  // not subscribed
  expect_as_recorded(server, id, heard, heard.ops.begin()->first);
}

TEST_F(Live, ReportsQueuePositionAndCancellation) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  const std::string first = server.generate(long_answer(900));
  const std::string second = server.generate(long_answer(900));
  client.say({{"type", "subscribe"}, {"session", second}, {"kinds", json::array()}});
  EXPECT_EQ(client.read_event()["type"], "subscribed");
  json state = client.read_event();
  EXPECT_EQ(state["state"], "queued");
  EXPECT_EQ(state["position"], 1);
  server.del("/api/v1/generate/" + first);
  while (state["state"] == "queued") state = client.read_event();
  EXPECT_EQ(state["state"], "running");
  server.del("/api/v1/generate/" + second);
  EXPECT_EQ(client.read_event()["state"], "cancelled");
}

TEST_F(Live, ReportsInvalidCommands) {
  TestServer server;
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  client.say({{"type", "shout"}});
  EXPECT_EQ(client.read_event()["code"], "bad_command");
  for (const char* id : {"20200101-000000-aaaaaa", "../../etc/passwd"}) {
    client.say({{"type", "subscribe"}, {"session", id}, {"kinds", {"op"}}});
    EXPECT_EQ(client.read_event()["code"], "not_live");
  }
  client.say({{"type", "unsubscribe"}, {"session", "*"}});
  EXPECT_EQ(client.read_event()["type"], "unsubscribed");
  client.say({{"type", "ack"}, {"bytes", 1 << 30}});
  EXPECT_EQ(client.read_event()["code"], "bad_ack");
  client.say({{"type", "ack"}, {"bytes", 1 << 30}});
  EXPECT_EQ(client.read_event()["code"], "bad_ack");
  EXPECT_EQ(client.socket().expect_close(), 1008);
  LiveListener wide(server.port);
  EXPECT_EQ(wide.read_event()["type"], "hello");
  wide.socket().send(kText, std::string(kMostCommandBytes + 1, ' '));
  EXPECT_EQ(wide.socket().expect_close(), 1009);
}

// ---------------------------------------------------------------- reconnecting clients

std::filesystem::path moe_model(const TempFolder& folder) {
  modelgen::ModelSpec spec;
  spec.shape = "moe";
  const auto made = modelgen::write_model(spec, folder / "moe.gguf");
  EXPECT_TRUE(made.has_value());
  return folder / "moe.gguf";
}

// Connects repeatedly, reads a few messages and disconnects.
void hear_with_breaks(TestServer& server, const std::string& id, LiveHeard& heard, int breaks,
                      std::mt19937& dice) {
  for (int connection = 0; connection <= breaks; ++connection) {
    LiveListener client(server.port);
    json command = {{"type", "subscribe"}, {"session", id}, {"kinds", kAllKinds}};
    command["from"] = heard.at.is_null() ? json::object() : heard.at;
    client.say(command);
    if (connection == breaks) return client.hear_to_the_end(id, heard);
    const auto messages = 1 + dice() % 20;  // few: the session must outlast the last disconnect
    for (std::uint32_t i = 0; i < messages; ++i) ASSERT_TRUE(client.hear(id, heard));
    ASSERT_FALSE(heard.ended()) << "after " << connection << " disconnects";
    client.socket().raw().reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 40));
  }
}

void expect_reconnecting_loses_nothing(const std::filesystem::path& model, const json& request) {
  TestServerOptions options;
  options.model = model;
  TestServer server(options);
  ASSERT_TRUE(server.wait_until_loaded());
  std::mt19937 dice(3);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const std::string id = server.generate(request);
    LiveHeard steady, restless;
    std::jthread other([&] {
      LiveListener client(server.port);
      client.say(
          {{"type", "subscribe"}, {"session", id}, {"kinds", kAllKinds}, {"from", json::object()}});
      client.hear_to_the_end(id, steady);
    });
    hear_with_breaks(server, id, restless, 10, dice);
    other.join();
    EXPECT_TRUE(steady.lost.empty() && restless.lost.empty());
    EXPECT_EQ(restless.tokens, steady.tokens);
    EXPECT_EQ(restless.steps, steady.steps);
    EXPECT_EQ(restless.text, steady.text);
    EXPECT_TRUE(restless.ops == steady.ops);
    EXPECT_TRUE(restless.routing == steady.routing);
    expect_as_recorded(server, id, restless);
    expect_as_answered(server, id, restless);
  }
}

TEST_F(Live, ReconnectingClientLosesNothing) {
  expect_reconnecting_loses_nothing(kPlaces.bundled_model, {{"tokens", prompt_of_tokens(700)},
                                                            {"max_tokens", 120},
                                                            {"ignore_eos", true},
                                                            {"temperature", 1}});
}

TEST_F(Live, ReconnectingClientOfMoeModelLosesNothing) {
  const TempFolder folder;
  expect_reconnecting_loses_nothing(moe_model(folder), {{"tokens", {5, 9, 12, 7, 30, 31, 32, 33}},
                                                        {"max_tokens", 60},
                                                        {"ignore_eos", true},
                                                        {"temperature", 1}});
}

// Resident memory of this process.
std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

TEST_F(Live, CommandFloodIsRateLimited) {
  TestServer server({.live = {.commands = 20, .commands_per_second = 200}});
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  constexpr int kMany = 600;
  const auto began = std::chrono::steady_clock::now();
  std::jthread flooding([&] {
    for (int i = 0; i < kMany; ++i)
      client.socket().send(kText,
                           R"({"type":"unsubscribe","session":")" + std::to_string(i) + "\"}");
  });
  // No command is lost; except for those already read, none is handled above the rate limit.
  for (int i = 0; i < kMany; ++i) {
    const json event = client.read_event();
    ASSERT_EQ(event["type"], "unsubscribed");
    ASSERT_EQ(event["session"], std::to_string(i));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1500));
}

TEST_F(Live, MisbehavingClientsDoNotAffectOthers) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  server.when_ended(server.generate(long_answer(900)));  // memory use has reached its maximum
  const std::size_t before = resident_bytes();

  LiveListener slow(server.port, 4096), silent(server.port, 4096);
  silent.acknowledges = false;
  for (LiveListener* client : {&slow, &silent})
    client->say({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  std::atomic<bool> over = false;
  std::jthread flooding([&] {
    while (!over) {
      LiveListener client(server.port);
      const std::string command =
          json{{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}}.dump();
      for (int i = 0; i < 5000 && !over; ++i) client.socket().send(kText, command);
    }
  });
  std::jthread vanishing([&] {
    while (!over) {
      LiveListener client(server.port, 4096);
      client.say({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
      client.read();
      client.socket().raw().reset();
    }
  });
  // Several megabytes, more than the system buffers, and no client reads them: each request
  // still runs to completion.
  std::size_t most_queued = 0, most_logged = 0;
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(server.generate(long_answer(900)));
    EXPECT_EQ(server.when_ended(ids.back())["generated"], 900);
    const LiveHub::Figures figures = server.hub.figures();
    most_queued = std::max(most_queued, figures.queued_bytes);
    most_logged = std::max(most_logged, figures.log_bytes);
  }
  over = true;
  flooding.join();
  vanishing.join();
  EXPECT_LE(most_queued, 16u << 20);
  EXPECT_LE(most_logged, 17u << 20);
  EXPECT_LT(resident_bytes(), before + (96u << 20));

  // The slow client starts reading and receives everything, one message of three sessions at a
  // time.
  std::map<std::string, LiveHeard> heard;
  for (const std::string& id : ids) heard[id];
  while (!std::ranges::all_of(ids, [&](const std::string& id) { return heard[id].ended(); })) {
    const WsFrame frame = slow.read();
    ASSERT_TRUE(frame.opcode == kText || frame.opcode == kBinary);
    if (frame.opcode == kText) {
      const json event = json::parse(frame.payload);
      if (const std::string id = event.value("session", ""); heard.contains(id))
        heard[id].add(event);
      continue;
    }
    std::uint32_t number = 0;
    std::memcpy(&number, frame.payload.data() + 8, sizeof number);
    for (auto& [id, of] : heard)
      if (of.number == number) of.add_frame(frame.payload);
  }
  for (const std::string& id : ids) {
    EXPECT_TRUE(heard[id].lost.empty());
    expect_as_recorded(server, id, heard[id]);
    expect_as_answered(server, id, heard[id]);
  }
}

TEST_F(Live, UnrecordedSessionIsStreamedAndMissedEventsCounted) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  json request = long_answer(50);
  request["level"] = "off";
  LiveListener client(server.port);
  client.say({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  EXPECT_EQ(client.read_event()["type"], "hello");
  EXPECT_EQ(client.read_event()["session"], "*");
  const std::string id = server.generate(request);
  LiveHeard heard;
  client.hear_to_the_end(id, heard);
  EXPECT_TRUE(heard.lost.empty());
  EXPECT_EQ(heard.text, server.state_of(id)["text"].get<std::string>());
  EXPECT_TRUE(heard.steps.empty());
  // Afterwards only the final state and the loss counts are available.
  LiveListener late(server.port);
  late.say(
      {{"type", "subscribe"}, {"session", id}, {"kinds", {"token"}}, {"from", json::object()}});
  LiveHeard nothing;
  late.hear_to_the_end(id, nothing);
  EXPECT_EQ(nothing.lost["tokens"], heard.tokens.size());
  EXPECT_EQ(nothing.states, (std::vector<std::string>{"done"}));
}

}  // namespace
}  // namespace tt::test
