// The live API: the data a WebSocket client receives equals the session file and the REST
// responses, whatever the client does in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <format>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "analysis/experts/routing.h"
#include "tests/server/support/program.h"
#include "tests/server/support/test_server.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

class Live : public ::testing::Test {
 protected:
  Live() { ensure_backends_loaded(); }
};

const json kAllKinds = {"token", "step", "op", "routing", "progress"};

json prompt_of_tokens(int count) {
  json tokens = json::array();
  for (int i = 0; i < count; ++i) tokens.push_back(300 + i * 7 % 400);
  return tokens;
}

json long_request(int tokens) {
  return {{"prompt", "Once"}, {"max_tokens", tokens}, {"ignore_eos", true}, {"temperature", 0}};
}

// Compares with the session file from `first_step` on, read independently of the server.
void expect_equals_recording(const SessionStore& sessions, const std::string& id,
                             const LiveTranscript& transcript, std::uint32_t first_step = 0) {
  const auto reader = sessions.open(id);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  const std::uint32_t steps = *reader->step_count();
  ASSERT_GT(steps, first_step);
  for (std::uint32_t i = first_step; i < steps; ++i) {
    SCOPED_TRACE(i);
    const Step step = *reader->step(StepId{i});
    ASSERT_EQ(transcript.ops.contains(i), !step.op_ends.empty());
    if (!step.op_ends.empty()) {
      const ReceivedOps& received = transcript.ops.at(i);
      EXPECT_TRUE(received.complete);
      ASSERT_EQ(received.end, step.op_ends);
      ASSERT_EQ(received.begin.front(), step.first_op);
      ASSERT_TRUE(
          std::equal(received.begin.begin() + 1, received.begin.end(), step.op_ends.begin()));
    }
    if (step.graph ==
        TemplateId{}) {  // not recorded because the disk was too slow: only its tokens are
      EXPECT_FALSE(transcript.routing.contains(i));
      continue;
    }
    std::vector<ReceivedRoute> routes;
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
    ASSERT_EQ(transcript.routing.contains(i), !routes.empty());
    if (!routes.empty()) {
      ASSERT_EQ(transcript.routing.at(i), routes);
    }
  }
}

// Compares with the tokens and steps that REST returns.
void expect_equals_rest(TestServer& server, const std::string& id,
                        const LiveTranscript& transcript) {
  const json tokens = server.get("/api/v1/sessions/" + id + "/tokens?limit=10000").body["tokens"];
  ASSERT_EQ(transcript.tokens.size(), tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (const char* field : {"index", "id", "position", "generated", "reused", "sequence",
                              "draft"})
      ASSERT_EQ(transcript.tokens[i][field], tokens[i][field]) << i << ' ' << field;
  }
  EXPECT_EQ(transcript.text, server.state_of(id)["text"].get<std::string>());
  const json steps = server.get("/api/v1/sessions/" + id + "/steps?limit=10000").body["steps"];
  ASSERT_EQ(transcript.steps.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    json received = transcript.steps[i];
    received.erase("session");
    ASSERT_EQ(received, steps[i]);
  }
}

TEST_F(Live, DeliversTokensStepsAndOpsExactlyOnce) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  LiveClient client(server.port);
  const json hello = client.read_event();
  EXPECT_EQ(hello["type"], "hello");
  EXPECT_EQ(hello["protocol"], 3);
  EXPECT_EQ(hello["window"], 512 << 10);
  client.send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  EXPECT_EQ(client.read_event()["number"], 0);

  // A prompt long enough to be sampled while it runs.
  const std::string id = server.generate({{"tokens", prompt_of_tokens(900)},
                                          {"max_tokens", 30},
                                          {"ignore_eos", true},
                                          {"temperature", 0}});
  LiveTranscript transcript;
  client.receive_all(id, transcript);
  EXPECT_EQ(transcript.states.back(), "done");
  EXPECT_TRUE(transcript.lost.empty());
  EXPECT_GT(transcript.partial_frames, 0) << "the prompt was not sampled while it ran";
  EXPECT_FALSE(transcript.progress.empty());
  expect_equals_recording(server.sessions, id, transcript);
  expect_equals_rest(server, id, transcript);

  // Again, from the file.
  LiveClient late(server.port);
  late.send_command(
      {{"type", "subscribe"}, {"session", id}, {"kinds", kAllKinds}, {"from", json::object()}});
  LiveTranscript again;
  late.receive_all(id, again);
  EXPECT_TRUE(again.same_rows(transcript));
}

TEST_F(Live, LateClientStartsWithCompleteStep) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate(long_request(400));
  ASSERT_TRUE(
      wait_until([&] { return server.get("/api/v1/sessions/" + id).body.value("steps", 0) > 20; }));
  LiveClient client(server.port);
  client.send_command({{"type", "subscribe"}, {"session", id}, {"kinds", {"op", "routing"}}});
  LiveTranscript transcript;
  client.receive_all(id, transcript);
  ASSERT_FALSE(transcript.ops.empty());
  EXPECT_GT(transcript.ops.begin()->first, 10u);
  EXPECT_TRUE(transcript.steps.empty());   // not subscribed
  EXPECT_TRUE(transcript.tokens.empty());  // not subscribed
  expect_equals_recording(server.sessions, id, transcript, transcript.ops.begin()->first);
}

TEST_F(Live, ReportsQueuePositionAndCancellation) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  LiveClient client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  const std::string first = server.generate(long_request(900));
  const std::string second = server.generate(long_request(900));
  client.send_command({{"type", "subscribe"}, {"session", second}, {"kinds", json::array()}});
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

// tt attach writes into the folder of a server that knows nothing of it.
TEST_F(Live, FollowsSessionsOfOtherPrograms) {
  const TempFolder folder;
  RunningServer server(folder.path(), {"--no-model"});
  LiveClient client(server.port());
  EXPECT_EQ(client.read_event()["type"], "hello");
  client.send_command(
      {{"type", "subscribe"}, {"session", "*"}, {"kinds", {"token", "step", "op"}}});
  EXPECT_EQ(client.read_event()["type"], "subscribed");
  std::jthread recording([&] {
    const std::string command = std::format(
        "cd {0} && {1} attach -q -o . -- llama-completion -m {2} -p Once -n 2500 "
        "-c 4096 -t 1 -no-cnv --ignore-eos >out 2>&1 </dev/null",
        folder.path().string(), kTestPaths.tt, kTestPaths.bundled_model);
    EXPECT_EQ(std::system(command.c_str()), 0);
  });
  const json subscribed = client.read_event();
  EXPECT_EQ(subscribed["type"], "subscribed");
  const std::string id = subscribed["session"];
  LiveTranscript transcript;
  transcript.add(subscribed);
  client.receive_all(id, transcript);
  recording.join();
  const SessionStore sessions(folder.path());
  EXPECT_EQ(transcript.states, (std::vector<std::string>{"running", "done"}));
  expect_equals_recording(sessions, id, transcript);
}

TEST_F(Live, ReportsInvalidCommands) {
  TestServer server;
  LiveClient client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  client.send_command({{"type", "shout"}});
  EXPECT_EQ(client.read_event()["code"], "bad_command");
  for (const char* id : {"20200101-000000-aaaaaa", "../../etc/passwd"}) {
    client.send_command({{"type", "subscribe"}, {"session", id}, {"kinds", {"op"}}});
    EXPECT_EQ(client.read_event()["code"], "not_live");
  }
  client.send_command({{"type", "unsubscribe"}, {"session", "*"}});
  EXPECT_EQ(client.read_event()["type"], "unsubscribed");
  client.send_command({{"type", "ack"}, {"bytes", 1 << 30}});
  EXPECT_EQ(client.read_event()["code"], "bad_ack");
  client.send_command({{"type", "ack"}, {"bytes", 1 << 30}});
  EXPECT_EQ(client.read_event()["code"], "bad_ack");
  EXPECT_EQ(client.socket().expect_close(), 1008);
  LiveClient wide(server.port);
  EXPECT_EQ(wide.read_event()["type"], "hello");
  wide.socket().send(kText, std::string(kMaxCommandBytes + 1, ' '));
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
void receive_with_disconnects(TestServer& server, const std::string& id, LiveTranscript& transcript,
                              int disconnects, std::mt19937& rng) {
  for (int connection = 0; connection <= disconnects; ++connection) {
    LiveClient client(server.port);
    json command = {{"type", "subscribe"}, {"session", id}, {"kinds", kAllKinds}};
    command["from"] = transcript.at.is_null() ? json::object() : transcript.at;
    client.send_command(command);
    if (connection == disconnects) return client.receive_all(id, transcript);
    const auto messages = 1 + rng() % 20;  // few: the session must outlast the last disconnect
    for (std::uint32_t i = 0; i < messages; ++i) ASSERT_TRUE(client.receive(id, transcript));
    ASSERT_FALSE(transcript.ended()) << "after " << connection << " disconnects";
    client.socket().raw().reset();
    // A random time, so that it returns at any moment of a step.
    std::this_thread::sleep_for(std::chrono::milliseconds(rng() % 40));
  }
}

void expect_reconnecting_loses_nothing(const std::filesystem::path& model, const json& request) {
  TestServerOptions options;
  options.model = model;
  TestServer server(options);
  ASSERT_TRUE(server.wait_until_loaded());
  std::mt19937 rng(3);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const std::string id = server.generate(request);
    LiveTranscript connected_client, reconnecting;
    std::jthread other([&] {
      LiveClient client(server.port);
      client.send_command(
          {{"type", "subscribe"}, {"session", id}, {"kinds", kAllKinds}, {"from", json::object()}});
      client.receive_all(id, connected_client);
    });
    receive_with_disconnects(server, id, reconnecting, 10, rng);
    other.join();
    EXPECT_TRUE(connected_client.lost.empty() && reconnecting.lost.empty());
    EXPECT_EQ(reconnecting.tokens, connected_client.tokens);
    EXPECT_EQ(reconnecting.steps, connected_client.steps);
    EXPECT_EQ(reconnecting.text, connected_client.text);
    EXPECT_TRUE(reconnecting.ops == connected_client.ops);
    EXPECT_TRUE(reconnecting.routing == connected_client.routing);
    expect_equals_recording(server.sessions, id, reconnecting);
    expect_equals_rest(server, id, reconnecting);
  }
}

TEST_F(Live, ReconnectingClientLosesNothing) {
  expect_reconnecting_loses_nothing(kTestPaths.bundled_model, {{"tokens", prompt_of_tokens(700)},
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
  LiveClient client(server.port);
  EXPECT_EQ(client.read_event()["type"], "hello");
  constexpr int kCount = 600;
  const auto began = std::chrono::steady_clock::now();
  std::jthread flooding([&] {
    for (int i = 0; i < kCount; ++i)
      client.socket().send(kText,
                           R"({"type":"unsubscribe","session":")" + std::to_string(i) + "\"}");
  });
  // No command is lost; except for those already read, none is handled above the rate limit.
  for (int i = 0; i < kCount; ++i) {
    const json event = client.read_event();
    ASSERT_EQ(event["type"], "unsubscribed");
    ASSERT_EQ(event["session"], std::to_string(i));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1500));
}

TEST_F(Live, MisbehavingClientsDoNotAffectOthers) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  server.wait_for_end(server.generate(long_request(900)));  // memory use has reached its maximum
  const std::size_t before = resident_bytes();

  LiveClient slow(server.port, 4096), silent(server.port, 4096);
  silent.acknowledges = false;
  for (LiveClient* client : {&slow, &silent})
    client->send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  std::atomic<bool> over = false;
  std::jthread flooding([&] {
    while (!over) {
      LiveClient client(server.port);
      const std::string command =
          json{{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}}.dump();
      for (int i = 0; i < 5000 && !over; ++i) client.socket().send(kText, command);
    }
  });
  std::jthread vanishing([&] {
    while (!over) {
      LiveClient client(server.port, 4096);
      client.send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
      client.read();
      client.socket().raw().reset();
    }
  });
  // Several megabytes, more than the system buffers, and no client reads them: each request
  // still runs to completion.
  std::size_t max_queued = 0, max_logged = 0;
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(server.generate(long_request(900)));
    EXPECT_EQ(server.wait_for_end(ids.back())["generated"], 900);
    const LiveHub::Stats stats = server.hub.stats();
    max_queued = std::max(max_queued, stats.queued_bytes);
    max_logged = std::max(max_logged, stats.log_bytes);
  }
  over = true;
  flooding.join();
  vanishing.join();
  EXPECT_LE(max_queued, 16u << 20);
  EXPECT_LE(max_logged, 17u << 20);
  EXPECT_LT(resident_bytes(), before + (96u << 20));

  // The slow client starts reading and receives everything, one message of three sessions at a
  // time.
  std::map<std::string, LiveTranscript> transcript;
  for (const std::string& id : ids) transcript[id];
  while (!std::ranges::all_of(ids, [&](const std::string& id) { return transcript[id].ended(); })) {
    const WsFrame frame = slow.read();
    ASSERT_TRUE(frame.opcode == kText || frame.opcode == kBinary);
    if (frame.opcode == kText) {
      const json event = json::parse(frame.payload);
      if (const std::string id = event.value("session", ""); transcript.contains(id))
        transcript[id].add(event);
      continue;
    }
    std::uint32_t number = 0;
    std::memcpy(&number, frame.payload.data() + 8, sizeof number);
    for (auto& [id, of] : transcript)
      if (of.number == number) of.add_frame(frame.payload);
  }
  for (const std::string& id : ids) {
    EXPECT_TRUE(transcript[id].lost.empty());
    expect_equals_recording(server.sessions, id, transcript[id]);
    expect_equals_rest(server, id, transcript[id]);
  }
}

TEST_F(Live, UnrecordedSessionIsStreamedAndMissedEventsCounted) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  json request = long_request(50);
  request["level"] = "off";
  LiveClient client(server.port);
  client.send_command({{"type", "subscribe"}, {"session", "*"}, {"kinds", kAllKinds}});
  EXPECT_EQ(client.read_event()["type"], "hello");
  EXPECT_EQ(client.read_event()["session"], "*");
  const std::string id = server.generate(request);
  LiveTranscript transcript;
  client.receive_all(id, transcript);
  EXPECT_TRUE(transcript.lost.empty());
  EXPECT_EQ(transcript.text, server.state_of(id)["text"].get<std::string>());
  EXPECT_TRUE(transcript.steps.empty());
  // Afterwards only the final state and the loss counts are available.
  LiveClient late(server.port);
  late.send_command(
      {{"type", "subscribe"}, {"session", id}, {"kinds", {"token"}}, {"from", json::object()}});
  LiveTranscript nothing;
  late.receive_all(id, nothing);
  EXPECT_EQ(nothing.lost["tokens"], transcript.tokens.size());
  EXPECT_EQ(nothing.states, (std::vector<std::string>{"done"}));
}

}  // namespace
}  // namespace tt::test
