// Request bodies that are expensive to parse, tokenize or render: each gets a 4xx in time, and
// leaves nothing running when its client leaves.
#include <gtest/gtest.h>
#include <httplib.h>

#include <array>
#include <format>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/http/mutator.h"
#include "tests/server/support/generated_cases.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/server_watch.h"

namespace tt::test {
namespace {

struct Body {
  const char* name;
  const char* target;
  std::string text;
  const char* detail;  // part of the error message
};

std::string keys(int count) {
  std::string all = "{";
  for (int i = 0; i < count; ++i) all += std::format("{}\"k{}\":1", i == 0 ? "" : ",", i);
  return all + "}";
}

std::vector<Body> bodies() {
  constexpr const char* kGenerate = "/api/v1/generate";
  constexpr const char* kTooLong = "the maximum is";
  constexpr std::size_t kMaxBody = 16u << 20;
  const std::string message = R"({"role":"user","content":"a"})";
  return {
      {"unknown keys", kGenerate, keys(200'000), "64 fields"},
      {"unknown keys of a message", kGenerate, R"({"messages":[)" + keys(200'000) + "]}",
       "64 fields"},
      {"objects of many keys", kGenerate,
       R"({"messages":[)" + keys(64) + repeat(15'000, "," + keys(64)) + "]}", "at most 4096"},
      {"accented text", kGenerate, R"({"prompt":")" + repeat(500'000, "é") + "\"}", kTooLong},
      {"accented words", kGenerate, R"({"prompt":")" + repeat(120'000, "élève ") + "\"}", kTooLong},
      {"one long word", kGenerate, R"({"prompt":")" + repeat(1'000'000, "a") + "\"}", kTooLong},
      {"spaces", kGenerate, R"({"prompt":")" + repeat(1'000'000, " ") + "\"}", kTooLong},
      {"special tokens", kGenerate, R"({"prompt":")" + repeat(200'000, "<user>") + "\"}", kTooLong},
      {"text of the largest body", kGenerate,
       R"({"prompt":")" + repeat((kMaxBody - 100) / 2, "é") + "\"}", kTooLong},
      {"messages", kGenerate, R"({"messages":[)" + message + repeat(299'999, "," + message) + "]}",
       "at most 4096"},
      {"more messages than allowed", kGenerate,
       R"({"messages":[)" + message + repeat(4096, "," + message) + "]}", "at most 4096"},
      {"long messages", kGenerate,
       R"({"messages":[)" + message +
           repeat(1000, R"(,{"role":"user","content":")" + repeat(1000, "é") + "\"}") + "]}",
       kTooLong},
      {"brackets", kGenerate, repeat(kMaxBody, "["), "64 nested"},
      {"nested objects", kGenerate, repeat(kMaxBody / 5, R"({"a":)"), "64 nested"},
      {"empty arrays", kGenerate, R"({"tokens":[[])" + repeat(5'000'000, ",[]") + "]}", "values"},
      {"tokens", kGenerate, R"({"tokens":[1)" + repeat(8'000'000, ",1") + "]}", "values"},
      {"number of many digits", kGenerate, R"({"seed":)" + repeat(kMaxBody - 100, "9") + "}",
       "JSON object"},
      {"fields of a query", "/api/v1/sessions/none/query", keys(200'000), "64 fields"},
      {"nested query", "/api/v1/sessions/none/query", repeat(kMaxBody, "["), "64 nested"},
  };
}

TEST(HostileBodies, AreRejectedInTime) {
  const TempFolder folder;
  RunningServer server(folder.path());
  ASSERT_TRUE(server.wait_until_loaded());
  httplib::Client client = http_client(server.url);
  ServerWatch watch(server.program.pid(), server.url);
  for (const Body& body : bodies()) {
    SCOPED_TRACE(body.name);
    const auto began = Clock::now();
    const auto answer = client.Post(body.target, body.text, "application/json");
    EXPECT_LT(Clock::now() - began, kMaxResponseTime);
    ASSERT_TRUE(answer);
    EXPECT_GE(answer->status, 400);
    EXPECT_LT(answer->status, 500);
    EXPECT_TRUE(answer->body.contains(body.detail)) << answer->body.substr(0, 300);
    EXPECT_TRUE(watch.memory_returns());
  }
  watch.expect_limits();
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
}

json random_number(Mutator& mutator) {
  constexpr std::array kNumbers = {0.0,  -1.0, 0.5,   -0.0, 1e-320, 1e308, -1e308,
                                   64.0, 1e6,  -64.0, 1e18, 3e9,    7e-1,  100.0};
  switch (mutator.below(4)) {
    case 0:
      return mutator.one_of(std::span<const double>(kNumbers));
    case 1:
      return (std::uint64_t{1} << mutator.below(64)) - mutator.below(2);
    case 2:
      return -static_cast<std::int64_t>(std::uint64_t{1} << mutator.below(63));
    default:
      return mutator.below(300);
  }
}

std::string random_text(Mutator& mutator) {
  constexpr std::array<std::string_view, 12> kParts = {
      "a", " ", "é", "word ", "\n", "<user>", "<reply>", "\U0001F438", "{{", "\t\r", "漢字", "-1 "};
  std::string text;
  for (std::size_t parts = 1 + mutator.below(3); parts > 0; --parts)
    text += repeat(std::size_t{1} << mutator.below(14),
                   mutator.one_of(std::span<const std::string_view>(kParts)));
  return text;
}

// A generation body: a prompt of any kind and any numbers.
json random_body(Mutator& mutator) {
  json body = {{"max_tokens", mutator.below(4)}};
  switch (mutator.below(3)) {
    case 0:
      body["prompt"] = random_text(mutator);
      break;
    case 1:
      for (std::size_t left = std::size_t{1} << mutator.below(13); left > 0; --left)
        body["tokens"].push_back(mutator.below(1100));
      break;
    default:
      for (std::size_t left = std::size_t{1} << mutator.below(6); left > 0; --left)
        body["messages"].push_back({{"role", mutator.once_in(2) ? "user" : "assistant"},
                                    {"content", random_text(mutator)}});
  }
  for (const char* field :
       {"temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "seed"})
    if (mutator.once_in(4)) body[field] = random_number(mutator);
  if (mutator.once_in(4)) body["ignore_eos"] = true;
  if (mutator.once_in(4)) body["stop"] = json::array({random_text(mutator)});
  return body;
}

TEST(HostileBodies, GeneratedBodiesAreAnsweredInTime) {
  const TempFolder folder;
  RunningServer server(folder.path());
  ASSERT_TRUE(server.wait_until_loaded());
  httplib::Client client = http_client(server.url);
  const GeneratedCases cases(100);
  Mutator mutator(cases.first_seed);
  ServerWatch watch(server.program.pid(), server.url);
  for (std::uint32_t i = 0; i < cases.count; ++i) {
    std::string body = random_body(mutator).dump();
    if (mutator.once_in(3)) body = mutator.expanded(body, 1 << 20);
    SCOPED_TRACE(json(body.substr(0, 300)).dump(-1, ' ', true, json::error_handler_t::replace));
    const auto began = Clock::now();
    const auto answer = client.Post("/api/v1/generate", body, "application/json");
    ASSERT_TRUE(answer);
    EXPECT_LT(Clock::now() - began, kMaxResponseTime);
    EXPECT_TRUE(answer->status == 202 || (answer->status >= 400 && answer->status < 500))
        << answer->status << answer->body.substr(0, 300);
    if (answer->status == 202) server.wait_for_end(json::parse(answer->body)["id"]);
  }
  watch.expect_limits();
}

double cpu_seconds(RunningServer& server) {
  const auto metrics = http_client(server.url).Get("/metrics");
  const std::string name = "\nprocess_cpu_seconds_total ";
  const std::size_t at = metrics ? metrics->body.find(name) : std::string::npos;
  return at == std::string::npos ? -1 : std::stod(metrics->body.substr(at + name.size()));
}

TEST(HostileBodies, LeaveNothingRunningWhenTheClientLeaves) {
  const TempFolder folder;
  RunningServer server(folder.path());
  ASSERT_TRUE(server.wait_until_loaded());
  for (const Body& body : bodies()) {
    SCOPED_TRACE(body.name);
    RawClient client(server.port());
    client.send(
        std::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                    "application/json\r\nContent-Length: {}\r\n\r\n",
                    body.target, body.text.size()));
    client.send(body.text);
  }
  const auto deadline = Clock::now() + 10s * kTimeFactor;
  double before = -1, used = 1;
  while (used > 0.05 && Clock::now() < deadline) {
    before = cpu_seconds(server);
    std::this_thread::sleep_for(500ms);
    used = cpu_seconds(server) - before;
  }
  EXPECT_LE(used, 0.05) << "seconds in half a second";
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(5s * kTimeFactor), 0) << server.program.stderr_text();
}

}  // namespace
}  // namespace tt::test
