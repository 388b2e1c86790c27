// POST /api/v1/generate with "stream": server-sent events, and misbehaving clients.
#include "server/live/generation_streams.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/test_server.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

struct SseEvent {
  std::string name;
  json data;
};

// Fails the test for anything that is not an event or a comment.
std::vector<SseEvent> parse_events(const std::string& text) {
  std::vector<SseEvent> events;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find("\n\n", at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "incomplete event: " << text.substr(at);
      break;
    }
    const std::string one = text.substr(at, end - at);
    at = end + 2;
    if (one.starts_with(":")) continue;  // a comment
    const std::size_t line = one.find('\n');
    EXPECT_TRUE(one.starts_with("event: ") && one.compare(line + 1, 6, "data: ") == 0) << one;
    events.push_back({.name = one.substr(7, line - 7),
                      .data = json::parse(one.substr(line + 7), nullptr, false)});
    EXPECT_EQ(events.back().data["type"], json(events.back().name));
  }
  return events;
}

json streaming_request(int tokens) {
  return {{"prompt", "The sea"}, {"max_tokens", tokens}, {"temperature", 0}, {"ignore_eos", true},
          {"seed", 1},           {"stream", true}};
}

// Reads a response until it ends, or until `enough` returns true and it disconnects.
struct StreamReader {
  explicit StreamReader(const TestServer& server, const json& body,
                        std::function<bool(const std::string&)> enough = {})
      : thread([this, port = server.port, text_of_body = body.dump(), enough] {
          httplib::Client client = http_client("http://127.0.0.1:" + std::to_string(port));
          httplib::Request request;
          request.method = "POST";
          request.path = "/api/v1/generate";
          request.set_header("Content-Type", "application/json");
          request.body = text_of_body;
          request.response_handler = [&](const httplib::Response& response) {
            status = response.status;
            type = response.get_header_value("Content-Type");
            location = response.get_header_value("Location");
            return true;
          };
          request.content_receiver = [&](const char* data, std::size_t size, std::size_t,
                                         std::size_t) {
            const std::scoped_lock lock(mutex);
            text.append(data, size);
            return !enough || !enough(text);
          };
          (void)client.send(request);
          ended = true;
        }) {}
  ~StreamReader() {
    if (thread.joinable()) thread.join();
  }
  std::string so_far() {
    const std::scoped_lock lock(mutex);
    return text;
  }
  std::string id() { return location.substr(location.rfind('/') + 1); }

  std::mutex mutex;
  std::string text, type, location;
  std::atomic<int> status = 0;
  std::atomic<bool> ended = false;
  std::thread thread;
};

class Stream : public ::testing::Test {
 protected:
  Stream() { ensure_backends_loaded(); }
};

TEST_F(Stream, SendsAllEventsFromQueuedToDone) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  StreamReader reader(server, streaming_request(8));
  reader.thread.join();
  EXPECT_EQ(reader.status, 200);
  EXPECT_EQ(reader.type, "text/event-stream");
  const std::string id = reader.id();
  const json status = server.state_of(id);
  EXPECT_EQ(status["state"], "done");

  const auto events = parse_events(reader.text);
  ASSERT_GT(events.size(), 10U);
  EXPECT_EQ(events.front().name, "state");
  EXPECT_EQ(events.front().data["state"], "queued");
  EXPECT_EQ(events.back().name, "state");
  EXPECT_EQ(events.back().data["state"], "done");
  std::string text;
  int steps = 0, tokens = 0, generated = 0;
  for (const SseEvent& event : events) {
    EXPECT_EQ(event.data["session"], json(id));
    if (event.name == "token" && event.data["generated"]) text += event.data["text"];
    if (event.name == "text") text += event.data["text"];
    if (event.name == "token") {
      EXPECT_EQ(event.data["index"], tokens++);
    }
    if (event.name == "step") {
      EXPECT_EQ(event.data["step"], steps++);
    }
    if (event.name == "progress") generated = event.data["generated"];
  }
  EXPECT_EQ(text, status["text"].get<std::string>());
  EXPECT_EQ(generated, 8);
  const json session = server.get("/api/v1/sessions/" + id).body;
  EXPECT_EQ(steps, session["steps"]);
  EXPECT_EQ(tokens, session["tokens"]);
  // Step events equal the steps that REST returns afterwards.
  const json recorded = server.get("/api/v1/sessions/" + id + "/steps").body["steps"];
  for (const SseEvent& event : events) {
    if (event.name != "step") continue;
    json step = event.data;
    step.erase("type");
    step.erase("session");
    EXPECT_EQ(step, recorded[step["step"].get<std::size_t>()]);
  }
}

TEST_F(Stream, ClientDisconnectCancelsGeneration) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const auto tokens_seen = [](const std::string& text) {
    return text.find("\"generated\":true") != std::string::npos;
  };
  StreamReader reader(server, streaming_request(900), tokens_seen);
  reader.thread.join();
  const json ended = server.wait_for_end(reader.id());
  EXPECT_EQ(ended["state"], "cancelled");
  EXPECT_LT(ended["generated"], 900);
  EXPECT_GT(ended["generated"], 0);
  EXPECT_EQ(server.get("/api/v1/sessions/" + reader.id()).body["state"], "cancelled");
}

TEST_F(Stream, QueuedRequestReportsPositionAndIsCancelledOnDisconnect) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string first =
      server.generate({{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}});
  ASSERT_TRUE(wait_until([&] { return server.state_of(first)["state"] == "running"; }));
  const auto queued = [](const std::string& text) {
    return text.find("\"queued\"") != std::string::npos;
  };
  StreamReader waits(server, streaming_request(3));
  ASSERT_TRUE(wait_until([&] { return queued(waits.so_far()); }));
  // A later request disconnects while it is queued.
  StreamReader leaves(server, streaming_request(3), queued);
  leaves.thread.join();
  const json left = server.wait_for_end(leaves.id());
  EXPECT_EQ(left["state"], "cancelled");
  EXPECT_EQ(left["generated"], 0);

  server.del("/api/v1/generate/" + first);
  waits.thread.join();
  const auto events = parse_events(waits.so_far());
  ASSERT_GT(events.size(), 3U);
  EXPECT_EQ(events[0].data["state"], "queued");
  EXPECT_EQ(events[0].data["position"], 1);
  std::vector<std::string> states;
  for (const SseEvent& event : events)
    if (event.name == "state") states.push_back(event.data["state"]);
  EXPECT_EQ(states, (std::vector<std::string>{"queued", "running", "done"}));
}

TEST_F(Stream, RejectedRequestReturnsProblem) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  json body = streaming_request(3);
  body["colour"] = 1;
  TestResponse answer = server.post("/api/v1/generate", body.dump());
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.type, "application/problem+json");
  body = streaming_request(3);
  body["model"] = "unknown";
  answer = server.post("/api/v1/generate", body.dump());
  EXPECT_EQ(answer.status, 400);
  body = streaming_request(3);
  body["prompt"] = "";
  answer = server.post("/api/v1/generate", body.dump());
  EXPECT_EQ(answer.status, 422);

  // The maximum number of streams, and one more.
  const std::string first =
      server.generate({{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}});
  std::vector<std::unique_ptr<StreamReader>> readers;
  for (std::size_t i = 0; i < GenerationStreams::kMaxStreams; ++i) {
    readers.push_back(std::make_unique<StreamReader>(server, streaming_request(1)));
    StreamReader& reader = *readers.back();
    ASSERT_TRUE(wait_until([&] { return reader.status != 0; }));
    EXPECT_EQ(reader.status, 200);
  }
  answer = server.post("/api/v1/generate", streaming_request(1).dump());
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body["code"], "queue_full");
  EXPECT_EQ(server.get("/api/v1/health").status, 200) << "other requests must be served";
  server.del("/api/v1/generate/" + first);
  for (auto& reader : readers) {
    reader->thread.join();
    EXPECT_EQ(parse_events(reader->text).back().data["state"], "done");
  }
}

TEST_F(Stream, EndsWhenServerStops) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  StreamReader running(server, streaming_request(900));
  ASSERT_TRUE(
      wait_until([&] { return running.so_far().find("\"generated\":true") != std::string::npos; }));
  server.stop();
  running.thread.join();
  const auto events = parse_events(running.text);
  EXPECT_EQ(events.back().data["state"], "cancelled");
}

// ---------------------------------------------------------------- without a server

JobStatus status_of(JobState state) {
  JobStatus status;
  status.id = "a";
  status.state = state;
  return status;
}

TEST(GenerationStreams, SlowReaderLosesTokensAndGetsLossEvent) {
  GenerationStreams streams;
  const auto stream = streams.open("a");
  streams.on_state(status_of(JobState::Queued));
  streams.on_state(status_of(JobState::Running));
  const std::string large(100'000, 'x');
  constexpr std::uint64_t kTokens = 100;  // more than the buffer holds
  for (std::uint64_t i = 0; i < kTokens; ++i) streams.on_token("a", Token{}, large);
  streams.on_state(status_of(JobState::Done));
  EXPECT_FALSE(stream->ended());
  const auto events = parse_events(stream->read(1ms));
  EXPECT_TRUE(stream->ended());
  std::uint64_t lost = 0, tokens = 0, states = 0;
  for (const SseEvent& event : events) {
    if (event.name == "loss") lost = event.data["tokens"];
    tokens += event.name == "token" ? 1u : 0u;
    states += event.name == "state" ? 1u : 0u;
  }
  EXPECT_EQ(states, 3U) << "state events are never dropped";
  EXPECT_GT(lost, 0U);
  EXPECT_LE(tokens * large.size(), GenerationStream::kMaxQueuedBytes);
  EXPECT_EQ(tokens + lost, kTokens);
  EXPECT_EQ(events.back().data["state"], "done");
  EXPECT_EQ(stream->read(1ms), "");
}

TEST(GenerationStreams, SendsKeepAliveComments) {
  GenerationStreams streams(20ms);
  const auto stream = streams.open("a");
  streams.on_state(status_of(JobState::Queued));
  EXPECT_TRUE(stream->read(1ms).starts_with("event: state"));
  std::string beat;
  ASSERT_TRUE(wait_until([&] { return !(beat = stream->read(5ms)).empty(); }));
  EXPECT_TRUE(beat.starts_with(":"));
  EXPECT_TRUE(beat.ends_with("\n\n"));
}

TEST(GenerationStreams, IgnoresEventsOfOtherSessions) {
  GenerationStreams streams;
  const auto stream = streams.open("a");
  streams.on_token("b", Token{}, "x");
  EXPECT_EQ(stream->read(1ms), "");
  streams.close("a");
  streams.on_token("a", Token{}, "x");
  EXPECT_EQ(stream->read(1ms), "");
}

}  // namespace
}  // namespace tt::test
