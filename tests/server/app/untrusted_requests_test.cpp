// Requests that try to end the server, to keep it busy or to take its memory: each gets an error
// within 2 s, or runs and can be cancelled, and the server continues to work (docs/limits.md).
//
// TT_CASES: number of generated cases (default: 60). TT_SEED: the first seed.
#include <gtest/gtest.h>
#include <httplib.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <format>
#include <map>
#include <print>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/server_watch.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/temp_folder.h"
#include "tracer/text/chat_template.h"

namespace tt::test {
namespace {

constexpr auto kResponseTime = 2s;
// Of a process and its children; more than any test needs, less than the machine has.
constexpr const char* kMemoryLimit = "ulimit -v 16000000";

std::string repeated(std::size_t times, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

class UntrustedRequests : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.wait_until_loaded()); }

  struct Reply {
    int status = 0;  // 0: none
    json body;
    std::chrono::milliseconds time{};
  };
  Reply post(const json& body) {
    httplib::Client client = http_client(server_.url);
    const auto began = Clock::now();
    const auto response = client.Post("/api/v1/generate", body.dump(), "application/json");
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    if (!response) return {.status = 0, .body = {}, .time = time};
    return {.status = response->status,
            .body = json::parse(response->body, nullptr, false),
            .time = time};
  }

  // The request is rejected in time, or it runs and ends soon after it was cancelled.
  void expect_bounded(const json& body) {
    const Reply reply = post(body);
    EXPECT_LT(reply.time, kResponseTime);
    ASSERT_NE(reply.status, 0) << server_.program.stderr_text();
    if (reply.status != 202) {
      EXPECT_GE(reply.status, 400);
      EXPECT_LT(reply.status, 500) << reply.body;
      EXPECT_FALSE(reply.body.value("detail", "").empty());
      return;
    }
    const std::string id = reply.body["id"];
    std::this_thread::sleep_for(200ms);
    const auto began = Clock::now();
    ASSERT_TRUE(http_client(server_.url).Delete("/api/v1/generate/" + id));
    const json status = server_.wait_for_end(id);
    EXPECT_LT(Clock::now() - began, kResponseTime) << status;
  }

  void expect_works() {
    const Reply reply = post({{"prompt", "Once"}, {"max_tokens", 3}, {"ignore_eos", true}});
    ASSERT_EQ(reply.status, 202) << reply.body << server_.program.stderr_text();
    EXPECT_EQ(server_.wait_for_end(reply.body["id"])["state"], "done");
  }

  void expect_stops() {
    const auto began = Clock::now();
    server_.program.signal(SIGTERM);
    EXPECT_EQ(server_.program.wait(), 0);
    EXPECT_LT(Clock::now() - began, 5s);
  }

  explicit UntrustedRequests(const char* context = "1024")
      : server_(data_.path(), {"-c", context, "-t", "1"}, {}, kMemoryLimit) {}

  const TempFolder data_;
  RunningServer server_;
};

// With a context for a generation that runs longer than the test.
class UntrustedRequestsOfOthers : public UntrustedRequests {
 protected:
  UntrustedRequestsOfOthers() : UntrustedRequests("65536") {}
};

// Rules a0 ... aN: each consists of the next one as `format` says.
std::string chain(std::size_t rules, const std::string& first, const char* separator,
                  const std::string& last) {
  std::string grammar = first;
  for (std::size_t i = 0; i < rules; ++i)
    grammar += std::format("a{0} ::= a{1}{2}a{1}\n", i, i + 1, separator);
  return grammar + std::format("a{} ::= {}\n", rules, last);
}

TEST_F(UntrustedRequests, GrammarsAreBounded) {
  const std::vector<std::pair<std::string, std::string>> grammars = {
      {"parentheses after a comment", "root ::= #\r" + repeated(20'000, "(")},
      {"more of them", "root ::= #\r" + repeated(60'000, "(")},
      {"parentheses", "root ::= " + repeated(30'000, "(") + "\"a\"" + repeated(30'000, ")")},
      {"rules that double", chain(40, "root ::= a0\n", " ", "\"a\"")},
      {"more of them", chain(60, "root ::= a0\n", " ", "\"a\"")},
      {"alternatives that double", chain(40, "root ::= a0\n", " | ", "\"a\"")},
      {"optional rules that double", chain(40, "root ::= a0\n", " ", "\"a\"?")},
      {"after the first token", chain(40, "root ::= [a-zA-Z ] a0\n", " | ", "[a-z]")},
      {"2000 repetitions", "root ::= " + repeated(2000, "[a-z]* ")},
      {"5000 repetitions", "root ::= " + repeated(5000, "[a-z]* ")},
      {"nested counts", "root ::= ((((((\"a\"{1000}){1000}){1000}){1000}){1000}){1000})"},
      {"a huge count", "root ::= \"a\"{1000000000}"},
      {"left recursion", "root ::= root \"a\" | \"a\""},
      {"indirect left recursion", "root ::= b\nb ::= c? root\nc ::= \"c\""},
      {"an unending empty rule", "root ::= (\"\"*)*"},
      {"NUL bytes", std::string("root ::= \"a\0b\"", 14)},
      {"one long alternative list", "root ::= " + repeated(20'000, "\"\"|") + "\"a\""},
  };
  ServerWatch watch(server_.program.pid(), server_.url);
  for (const auto& [name, grammar] : grammars) {
    SCOPED_TRACE(name);
    expect_bounded({{"prompt", "x"}, {"max_tokens", 200}, {"grammar", grammar}});
    if (HasFatalFailure()) return;
  }
  expect_works();
  watch.expect_limits();
  expect_stops();
}

// A running generation is not disturbed by the grammars of others.
TEST_F(UntrustedRequestsOfOthers, GenerationContinues) {
  const Reply started =
      post({{"prompt", "Once"}, {"max_tokens", 60'000}, {"ignore_eos", true}, {"level", "off"}});
  ASSERT_EQ(started.status, 202) << started.body;
  const std::string id = started.body["id"];
  const auto generated = [&] {
    return server_.get("/api/v1/generate/" + id).value("generated", 0);
  };
  for (const std::size_t count : {2000U, 5000U}) {
    const int before = generated();
    const Reply reply =
        post({{"prompt", "x"}, {"grammar", "root ::= " + repeated(count, "[a-z]* ")}});
    EXPECT_EQ(reply.status, 422) << reply.body;
    EXPECT_LT(reply.time, kResponseTime);
    EXPECT_GT(generated(), before);
  }
  ASSERT_TRUE(http_client(server_.url).Delete("/api/v1/generate/" + id));
  EXPECT_EQ(server_.wait_for_end(id)["state"], "cancelled");
  expect_stops();
}

TEST_F(UntrustedRequests, NumbersAreBounded) {
  const json base = {{"prompt", "x"}, {"max_tokens", 20}, {"ignore_eos", true}};
  const auto with = [&](std::initializer_list<std::pair<const char*, json>> fields) {
    json body = base;
    for (const auto& [name, value] : fields) body[name] = value;
    return body;
  };
  ServerWatch watch(server_.program.pid(), server_.url);
  EXPECT_EQ(post(with({{"repeat_penalty", 100}, {"repeat_last_n", 2147483647}})).status, 400);
  for (const json& body : {
           with({{"repeat_penalty", 100}, {"repeat_last_n", 16777216}}),
           with({{"repeat_penalty", 100}, {"repeat_last_n", -1}}),
           with({{"repeat_penalty", 0.01}, {"repeat_last_n", 1024}}),
           with({{"top_k", 2147483647}}),
           with({{"temperature", 1e-38}}),
           with({{"temperature", 1e-300}}),
           with({{"temperature", 100}, {"top_k", 0}, {"top_p", 1}, {"min_p", 0}}),
           with({{"top_p", 0}}),
           with({{"min_p", 1}}),
           with({{"seed", 4294967295}}),
           with({{"max_tokens", 2147483647}}),
       }) {
    SCOPED_TRACE(body.dump());
    const Reply reply = post(body);
    ASSERT_EQ(reply.status, 202) << reply.body;
    EXPECT_EQ(server_.wait_for_end(reply.body["id"])["state"], "done");
  }
  watch.expect_limits();
  expect_stops();
}

// ---------------------------------------------------------------- chat templates

class UntrustedTemplates : public ::testing::TestWithParam<std::pair<const char*, std::string>> {};

const std::string kAnswer = "{% for m in messages %}{{ m['content'] }}{% endfor %}";

const std::pair<const char*, std::string> kTemplates[] = {
    {"Loop1e9", "{% for i in range(1000000000) %}{% endfor %}" + kAnswer},
    {"Loop1e12", "{% for i in range(1000000000000) %}x{% endfor %}" + kAnswer},
    {"NestedLoops", repeated(8, "{% for i in range(1000) %}") + "x" + repeated(8, "{% endfor %}")},
    {"RecursiveMacro", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
    {"MutualMacros",
     "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ g() }}"},
    {"CyclicList", "{% set l = [] %}{{ l.append(l) }}{{ l }}"},
    {"CyclicMap", "{% set n = namespace() %}{% set n.x = n %}{{ n }}" + kAnswer},
    {"CyclicEquality",
     "{% set a = [] %}{% set b = [] %}{{ a.append(b) }}{{ b.append(a) }}{{ a == b }}"},
    {"DivisionByZero", "{{ 1 // 0 }}"},
    {"ModuloZero", "{{ 1 % 0 }}"},
    {"MinimumByMinusOne", "{{ (-9223372036854775807 - 1) // -1 }}"},
    {"SelfCallingLoop", "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}"},
    {"LateLoop",
     "{% if messages | length > 4 %}{% for i in range(1000000000) %}{% endfor %}{% endif %}" +
         kAnswer},
    {"LateRecursion",
     "{% macro f() %}{{ f() }}{% endmacro %}{% if messages | length > 4 %}{{ f() }}{% endif %}" +
         kAnswer},
    {"DoublingText",
     "{% set n = namespace(s='xxxxxxxx') %}{% for i in range(40) %}{% set n.s = n.s ~ n.s %}"
     "{% endfor %}{{ n.s }}"},
    {"DeepParentheses", "{{ " + repeated(50'000, "(")},
    {"DeepLists", "{{ " + repeated(50'000, "[") + repeated(50'000, "]") + " }}"},
    {"DeepNot", "{{ " + repeated(100'000, "not ") + "true }}"},
    {"LongRepetition", "{{ 'x' * 1000000000000 }}"},
};

TEST_P(UntrustedTemplates, AreBounded) {
  const TempFolder data, models;
  const auto model =
      with_changes(kTestPaths.bundled_model, models / "hostile.gguf", [&](auto* file) {
        gguf_set_val_str(file, "tokenizer.chat_template", GetParam().second.c_str());
      });
  const auto began = Clock::now();
  RunningServer server(data.path(), {"--model", model.string(), "-c", "1024", "-t", "1"}, {},
                       kMemoryLimit);
  ASSERT_TRUE(server.wait_until_loaded()) << server.program.stderr_text();
  EXPECT_LT(Clock::now() - began, 10s);
  ServerWatch watch(server.program.pid(), server.url);
  json messages = json::array();
  for (int turn = 0; turn < 6; ++turn) {
    messages.push_back({{"role", turn % 2 == 0 ? "user" : "assistant"}, {"content", "Hello"}});
    httplib::Client client = http_client(server.url);
    const auto sent = Clock::now();
    const auto response =
        client.Post("/api/v1/generate", json{{"messages", messages}, {"max_tokens", 2}}.dump(),
                    "application/json");
    EXPECT_LT(Clock::now() - sent, kResponseTime);
    ASSERT_TRUE(response) << server.program.stderr_text();
    if (response->status == 202) {
      EXPECT_EQ(server.wait_for_end(json::parse(response->body)["id"])["state"], "done");
    } else {
      EXPECT_EQ(response->status, 422) << response->body;
    }
  }
  // Text is not affected.
  httplib::Client client = http_client(server.url);
  const auto text =
      client.Post("/api/v1/generate", R"({"prompt": "Once", "max_tokens": 2})", "application/json");
  ASSERT_TRUE(text);
  ASSERT_EQ(text->status, 202) << text->body;
  EXPECT_EQ(server.wait_for_end(json::parse(text->body)["id"])["state"], "done");
  watch.expect_limits();
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Hostile, UntrustedTemplates, ::testing::ValuesIn(kTemplates),
                         [](const auto& made) { return std::string(made.param.first); });

// ---------------------------------------------------------------- generated cases

std::uint32_t case_setting(const char* name, std::uint32_t value) {
  const char* given = std::getenv(name);
  return given == nullptr ? value : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}

// Text by nesting, repeating, doubling and joining pieces. The same for the same seed.
class CaseGenerator {
 public:
  explicit CaseGenerator(std::uint32_t seed) : rng_(seed) {}

  std::string grammar() {
    const std::size_t rules = 1 + below(4);
    std::string text =
        below(4) == 0 ? "root ::= #\r" + expression(3) + "\n" : "root ::= " + expression(3) + "\n";
    for (std::size_t i = 0; i < rules; ++i) text += std::format("r{} ::= {}\n", i, expression(3));
    if (below(3) == 0) text += chain(10 + below(60), "", below(2) == 0 ? " " : " | ", "\"a\"");
    return text.substr(0, 60'000);
  }

  std::string chat_template() { return statement(4).substr(0, 200'000); }

  json body() {
    json body = {{"prompt", std::string(1 + below(300), 'x')}, {"max_tokens", 1 + below(50)}};
    static constexpr const char* kNumbers[] = {"repeat_last_n", "repeat_penalty", "temperature",
                                               "top_k",         "top_p",          "min_p",
                                               "seed",          "max_tokens"};
    static constexpr double kValues[] = {
        0,      1,          -1,         0.5,         1e-300,     1e300,
        -1e300, 2147483647, 2147483648, -2147483648, 4294967295, 4294967296,
        1e19,   100,        16777216,   16777217,    0.01,       1e-45};
    for (std::size_t n = below(5); n > 0; --n) {
      const double value = kValues[below(std::size(kValues))];
      const char* name = kNumbers[below(std::size(kNumbers))];
      const bool whole = std::abs(value) < 9e18 && value == std::floor(value);
      body[name] = whole && below(4) != 0 ? json(static_cast<std::int64_t>(value)) : json(value);
    }
    if (below(4) == 0) body["grammar"] = grammar();
    if (below(8) == 0)
      body["stop"] =
          json(std::vector<std::string>(1 + below(32), std::string(1 + below(500), 'q')));
    if (below(8) == 0) body["stats_pattern"] = times(1 + below(900), "(");
    body["ignore_eos"] = below(2) == 0;
    return body;
  }

  std::size_t below(std::size_t limit) { return rng_() % limit; }

 private:
  static std::string times(std::size_t count, std::string_view text) {
    return repeated(count, text);
  }
  std::size_t large() {
    static constexpr std::size_t kCounts[] = {2, 10, 100, 1000, 5000};
    return kCounts[below(std::size(kCounts))];
  }

  std::string expression(int depth) {
    if (depth == 0) {
      static constexpr const char* kAtoms[] = {"\"a\"",
                                               "[a-z]",
                                               "[^x]",
                                               ".",
                                               "r0",
                                               "r1",
                                               "root",
                                               "\"\"",
                                               "a0",
                                               "\"\\x41\"",
                                               "[\\u0000-\\U0010ffff]"};
      return kAtoms[below(std::size(kAtoms))];
    }
    const std::string inner = expression(depth - 1);
    switch (below(8)) {
      case 0: {
        const std::size_t count = large() * below(6);
        return times(count, "(") + inner + times(count, ")");
      }
      case 1:
        return times(std::min<std::size_t>(large(), 30'000 / (inner.size() + 1)), inner + " ");
      case 2:
        return times(std::min<std::size_t>(large(), 30'000 / (inner.size() + 1)), inner + "|") +
               "\"z\"";
      case 3:
        return std::format("({}){{{},{}}}", inner, below(3), large());
      case 4:
        return "(" + inner + ")*";
      case 5:
        return times(std::min<std::size_t>(large(), 30'000 / (inner.size() + 3)),
                     "(" + inner + ")* ");
      case 6:
        return "(" + inner + ")? " + expression(depth - 1);
      default:
        return inner + " " + expression(depth - 1);
    }
  }

  std::string value(int depth) {
    if (depth == 0) {
      static constexpr const char* kAtoms[] = {
          "messages", "1",    "0",    "'x'",       "[]",          "{}",
          "none",     "true", "loop", "bos_token", "messages[0]", "-9223372036854775807",
          "1e308",    "f"};
      return kAtoms[below(std::size(kAtoms))];
    }
    const std::string inner = value(depth - 1);
    switch (below(9)) {
      case 0: {
        const std::size_t count = large() * below(10);
        return times(count, "(") + inner + times(count, ")");
      }
      case 1: {
        const std::size_t count = large() * below(10);
        return times(count, "[") + inner + times(count, "]");
      }
      case 2: {
        static constexpr const char* kOperators[] = {" + ", " - ",  " * ", " / ",  " // ",
                                                     " % ", " ** ", " ~ ", " in ", " == "};
        return inner + kOperators[below(std::size(kOperators))] + value(depth - 1);
      }
      case 3:
        return times(large() * below(10), "not ") + inner;
      case 4:
        return std::format("range({})", below(2) == 0 ? "1000000000" : inner);
      case 5:
        return inner + times(std::min<std::size_t>(large(), 2000), " | string");
      case 6:
        return inner + " | tojson(indent=100000)";
      case 7:
        return inner + "[" + value(depth - 1) + ":]";
      default:
        return "f(" + inner + ")";
    }
  }

  std::string statement(int depth) {
    if (depth == 0) return "{{ " + value(2) + " }}";
    const std::string inner = statement(depth - 1);
    switch (below(7)) {
      case 0:
        return "{% for m in " + value(1) + " %}" + inner + "{% endfor %}";
      case 1:
        return "{% for m in messages recursive %}" + inner + "{{ loop(" + value(1) +
               ") }}{% endfor %}";
      case 2:
        return "{% macro f(x) %}" + inner + "{% endmacro %}{{ f(" + value(1) + ") }}";
      case 3:
        return "{% if " + value(2) + " %}" + inner + "{% endif %}";
      case 4:
        return "{% set n = namespace(s='x') %}{% for i in range(" + std::to_string(large()) +
               ") %}{% set n.s = n.s ~ n.s %}{% endfor %}" + inner;
      case 5: {
        const std::size_t count = std::min<std::size_t>(large(), 1000);
        return times(count, "{% if true %}") + inner + times(count, "{% endif %}");
      }
      default:
        return "{% set x = " + value(2) + " %}" + inner + statement(depth - 1);
    }
  }

  std::mt19937 rng_;
};

TEST_F(UntrustedRequests, GeneratedRequestsAreBounded) {
  const std::uint32_t seed = case_setting("TT_SEED", 1), count = case_setting("TT_CASES", 60);
  std::println("TT_SEED={} TT_CASES={}", seed, count);
  ServerWatch watch(server_.program.pid(), server_.url);
  for (std::uint32_t n = 0; n < count; ++n) {
    SCOPED_TRACE(seed + n);
    CaseGenerator generator(seed + n);
    expect_bounded(
        n % 2 == 0 ? json{{"prompt", "x"}, {"max_tokens", 100}, {"grammar", generator.grammar()}}
                   : generator.body());
    if (HasFatalFailure()) return;
  }
  expect_works();
  watch.expect_limits();
  expect_stops();
}

TEST(GeneratedTemplates, AreBounded) {
  const std::uint32_t seed = case_setting("TT_SEED", 1), count = case_setting("TT_CASES", 60);
  std::println("TT_SEED={} TT_CASES={}", seed, count);
  Sandbox sandbox(kTestPaths.worker);
  std::map<std::string, int> ends;
  for (std::uint32_t n = 0; n < count; ++n) {
    SCOPED_TRACE(seed + n);
    const std::string source = CaseGenerator(seed + n).chat_template();
    const auto began = Clock::now();
    const auto text = render_chat(sandbox, source,
                                  std::vector<ChatMessage>{{"user", "Hello"}, {"assistant", "Hi."}},
                                  {.begin = "<s>", .end = "</s>"});
    EXPECT_LT(Clock::now() - began, kResponseTime);
    if (text) {
      ++ends["text"];
    } else {
      EXPECT_NE(text.error().kind, ChatError::Kind::Server) << text.error().message;
      ++ends[text.error().kind == ChatError::Kind::Template ? text.error().message
                                                            : "conversation rejected"];
    }
  }
  for (const auto& [end, times] : ends) std::println("{:>4} {}", times, end);
  EXPECT_TRUE(
      render_chat(sandbox, kAnswer, std::vector<ChatMessage>{{"user", "Hello"}}, {}).has_value());
}

}  // namespace
}  // namespace tt::test
