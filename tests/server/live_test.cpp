// The live half: what a WebSocket client hears equals what REST says afterwards.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/live_frames.h"
#include "tests/server/test_server.h"

namespace tt::test {
namespace {

class Live : public ::testing::Test {
 protected:
  Live() { need_backends(); }
};

const json kAllKinds = {"token", "step", "op", "progress"};

// Everything that one client heard of one session.
struct Heard {
  std::string text;
  std::vector<json> tokens, steps, states, progress;
  std::map<std::uint32_t, OpsFrame> ops;  // by step, put together
  std::vector<std::uint32_t> order;       // of the steps' first frames
  std::set<std::uint32_t> complete;
  int partial_frames = 0;
  std::uint64_t lost = 0;

  void add_ops(const OpsFrame& frame) {
    EXPECT_FALSE(complete.contains(frame.step.v)) << "step " << frame.step.v << " goes on";
    if (order.empty() || order.back() != frame.step.v) order.push_back(frame.step.v);
    OpsFrame& whole = ops[frame.step.v];
    if (frame.withdrawn) whole = {};
    EXPECT_EQ(frame.first.v, whole.begin.size()) << "in step " << frame.step.v;
    whole.begin.insert(whole.begin.end(), frame.begin.begin(), frame.begin.end());
    whole.end.insert(whole.end.end(), frame.end.begin(), frame.end.end());
    if (frame.complete) complete.insert(frame.step.v);
    if (!frame.complete) ++partial_frames;
  }
  void add(const json& event) {
    const std::string type = event["type"];
    if (type == "state") states.push_back(event);
    if (type == "progress") progress.push_back(event);
    if (type == "token") {
      tokens.push_back(event);
      if (event["generated"]) text += event["text"];
    }
    if (type == "text") text += event["text"];
    if (type == "step") steps.push_back(event);
    if (type == "loss") lost = event["frames"];
  }
  bool ended() const {
    return !states.empty() && states.back()["state"] != "queued" &&
           states.back()["state"] != "running";
  }
};

Heard hear_until_ended(LiveListener& client, const std::string& session, std::uint32_t number) {
  Heard heard;
  while (!heard.ended()) {
    const WsFrame frame = client.read();
    if (frame.opcode == kBinary) {
      const auto ops = decode_ops_frame(std::as_bytes(std::span(frame.payload)));
      EXPECT_TRUE(ops.has_value());
      if (!ops) return heard;
      EXPECT_EQ(ops->subscription, number);
      heard.add_ops(*ops);
    } else if (frame.opcode == kText) {
      const json event = json::parse(frame.payload);
      if (event.value("session", "") == session) heard.add(event);
    } else if (frame.opcode != kPing) {
      ADD_FAILURE() << "the connection ended with frame " << frame.opcode;
      return heard;
    }
  }
  return heard;
}

void expect_ops_as_recorded(TestServer& server, const std::string& id, const Heard& heard,
                            std::size_t first_step) {
  const json steps = server.get("/api/v1/sessions/" + id + "/steps?limit=10000").body["steps"];
  EXPECT_TRUE(std::ranges::is_sorted(heard.order));
  for (std::size_t i = first_step; i < steps.size(); ++i) {
    const auto step = static_cast<std::uint32_t>(i);
    SCOPED_TRACE(step);
    if (steps[i]["ops"] == 0) {
      EXPECT_FALSE(heard.ops.contains(step));
      continue;
    }
    ASSERT_TRUE(heard.complete.contains(step));
    const OpsFrame& ops = heard.ops.at(step);
    const json recorded =
        server.get("/api/v1/sessions/" + id + "/steps/" + std::to_string(step) + "/ops?limit=10000")
            .body["ops"];
    ASSERT_EQ(ops.begin.size(), recorded.size());
    for (std::size_t op = 0; op < recorded.size(); ++op) {
      ASSERT_EQ(ops.begin[op].v, recorded[op]["begin_ns"]) << op;
      ASSERT_EQ(ops.end[op].v, recorded[op]["end_ns"]) << op;
    }
  }
}

json prompt_of_tokens(int count) {
  json tokens = json::array();
  for (int i = 0; i < count; ++i) tokens.push_back(300 + i * 7 % 400);
  return tokens;
}

TEST_F(Live, TellsATokenAStepAndEveryOpExactlyOnce) {
  TestServer server;
  ASSERT_TRUE(server.loaded());
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  client.say({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  const json all = client.read_event();
  EXPECT_EQ(all["type"], "subscribed");
  EXPECT_EQ(all["session"], "*");
  EXPECT_EQ(all["number"], 0);

  // A prompt long enough to be looked at while it runs.
  const std::string id = server.generate({{"tokens", prompt_of_tokens(900)},
                                          {"max_tokens", 30},
                                          {"ignore_eos", true},
                                          {"temperature", 0}});
  const json subscribed = client.read_event();
  EXPECT_EQ(subscribed["session"].get<std::string>(), id);
  const Heard heard = hear_until_ended(client, id, subscribed["number"]);

  EXPECT_EQ(heard.lost, 0u);
  EXPECT_EQ(heard.states.back()["state"], "done");
  EXPECT_EQ(heard.text, server.state_of(id)["text"].get<std::string>());
  EXPECT_GT(heard.partial_frames, 0) << "no look caught the prompt while it ran";
  EXPECT_FALSE(heard.progress.empty());

  json tokens = server.get("/api/v1/sessions/" + id + "/tokens?limit=10000").body["tokens"];
  std::vector<json> generated;
  for (const json& token : tokens)
    if (token["generated"]) generated.push_back(token);
  std::vector<json> told;
  for (const json& token : heard.tokens)
    if (token["generated"]) told.push_back(token);
  ASSERT_EQ(told.size(), generated.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i]["index"], generated[i]["index"]);
    EXPECT_EQ(told[i]["id"], generated[i]["id"]);
    EXPECT_EQ(told[i]["position"], generated[i]["position"]);
  }

  const json steps = server.get("/api/v1/sessions/" + id + "/steps?limit=10000").body["steps"];
  ASSERT_EQ(heard.steps.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    json summary = heard.steps[i];
    summary.erase("type");
    summary.erase("session");
    json expected = steps[i];
    // Numbers of templates are the file's.
    summary.erase("template");
    expected.erase("template");
    EXPECT_EQ(summary, expected);
  }
  expect_ops_as_recorded(server, id, heard, 0);
}

TEST_F(Live, AClientInTheMiddleBeginsWithAWholeStep) {
  TestServer server;
  ASSERT_TRUE(server.loaded());
  const std::string id = server.generate(
      {{"prompt", "Once"}, {"max_tokens", 400}, {"ignore_eos", true}, {"temperature", 0}});
  ASSERT_TRUE(
      eventually([&] { return server.get("/api/v1/sessions/" + id).body.value("steps", 0) > 20; }));
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  client.say({{"type", "subscribe"}, {"session", id}, {"kinds", {"op"}}});
  const json subscribed = client.read_event();
  ASSERT_EQ(subscribed["type"], "subscribed");
  Heard heard = hear_until_ended(client, id, subscribed["number"]);
  ASSERT_FALSE(heard.order.empty());
  EXPECT_GT(heard.order.front(), 10u);
  EXPECT_TRUE(heard.steps.empty());   // not asked for
  EXPECT_TRUE(heard.tokens.empty());  // neither
  expect_ops_as_recorded(server, id, heard, heard.order.front());
}

TEST_F(Live, TellsPositionsAndCancellations) {
  TestServer server;
  ASSERT_TRUE(server.loaded());
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  const json endless = {{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}};
  const std::string first = server.generate(endless);
  const std::string second = server.generate(endless);
  client.say({{"type", "subscribe"}, {"session", second}, {"kinds", json::array()}});
  EXPECT_EQ(client.read_event()["type"], "subscribed");
  json state = client.read_event();
  EXPECT_EQ(state["state"], "queued");
  EXPECT_EQ(state["position"], 1);
  server.del("/api/v1/generate/" + first);
  do {
    state = client.read_event();
    EXPECT_EQ(state["session"].get<std::string>(), second);
  } while (state["state"] == "queued");
  EXPECT_EQ(state["state"], "running");
  server.del("/api/v1/generate/" + second);
  EXPECT_EQ(client.read_event()["state"], "cancelled");
}

TEST_F(Live, AnswersWhatItCannotDo) {
  TestServer server;
  LiveListener client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  client.say({{"type", "shout"}});
  json answer = client.read_event();
  EXPECT_EQ(answer["type"], "error");
  EXPECT_EQ(answer["code"], "bad_command");
  client.say({{"type", "subscribe"}, {"session", "20200101-000000-aaaaaa"}, {"kinds", {"op"}}});
  answer = client.read_event();
  EXPECT_EQ(answer["code"], "not_live");
  client.say({{"type", "unsubscribe"}, {"session", "*"}});
  EXPECT_EQ(client.read_event()["type"], "unsubscribed");
}

TEST_F(Live, ASlowClientLosesCountedMessagesAndTheServerGoesOn) {
  TestServerOptions options;
  options.door.websocket_queue_bytes = 32 << 10;
  TestServer server(options);
  ASSERT_TRUE(server.loaded());
  LiveListener client(server.port, 4096);
  client.say({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  // Several megabytes, more than the system buffers, with nobody reading.
  for (int i = 0; i < 2; ++i) {
    const std::string id = server.generate(
        {{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}, {"temperature", 0}});
    EXPECT_EQ(server.when_ended(id)["generated"], 900);
  }
  // Now it reads what there is: some of it, and the growing count of what there is not.
  std::uint64_t lost = 0;
  while (lost == 0) {
    const WsFrame frame = client.read();
    ASSERT_TRUE(frame.opcode == kText || frame.opcode == kBinary);
    if (frame.opcode != kText) continue;
    const json event = json::parse(frame.payload);
    if (event["type"] == "loss") lost = event["frames"];
  }
}

}  // namespace
}  // namespace tt::test
