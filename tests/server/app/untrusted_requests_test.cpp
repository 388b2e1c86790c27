// Requests that try to end the server, to keep it busy or to take its memory: each gets an error
// within 2 s, or runs and can be cancelled, and the server continues to work (docs/limits.md).
//
// TT_CASES: number of generated cases. TT_SEED: the first seed (docs/fuzzing.md).
#include <gtest/gtest.h>
#include <httplib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <format>
#include <map>
#include <print>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/bystander.h"
#include "tests/server/support/generated_cases.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/server_watch.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

constexpr auto kResponseTime = 2s * kTimeFactor;
constexpr auto kTemplateLoadTime = 10s * kTimeFactor;
constexpr auto kStopTime = 5s * kTimeFactor;
// Of a process and its children; more than any test needs, less than the machine has.
// AddressSanitizer reserves terabytes of addresses.
constexpr const char* kMemoryLimit = kAddressSanitizer ? ":" : "ulimit -v 16000000";

std::string repeated(std::size_t times, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// The models small and other, to be loaded on request.
class TwoModels {
 public:
  TwoModels() {
    for (const char* name : {"small.gguf", "other.gguf"})
      std::filesystem::copy_file(kTestPaths.bundled_model, folder_ / name);
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_.path() / name; }
  std::vector<std::string> options() const {
    return {"--no-model",
            "--models-dir",
            folder_.path().string(),
            "--models-max",
            "3",
            "-c",
            "1024",
            "-t",
            "1"};
  }

 private:
  const TempFolder folder_;
};

class UntrustedRequests : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(server_.load("small"), ""); }

  struct Reply {
    int status = 0;  // 0: none
    json body;
    std::chrono::milliseconds time{};
  };
  Reply post(json body) {
    body["model"] = "small";
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
      // 503: the machine was too busy to tell.
      EXPECT_TRUE(reply.status < 500 || reply.status == 503) << reply.status << reply.body;
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
    EXPECT_LT(Clock::now() - began, kStopTime);
  }

  const TempFolder data_;
  const TwoModels models_;
  RunningServer server_{data_.path(), models_.options(), {}, kMemoryLimit};
  Bystander other_{server_, data_.path(), "other"};
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
  other_.expect_undisturbed();
  watch.expect_limits();
  expect_stops();
}

// SIGTERM ends the server in time, whatever its children are doing.
TEST_F(UntrustedRequests, StopIsNotDelayed) {
  other_.stop();
  const json bodies[] = {
      {{"prompt", "x"}, {"grammar", "root ::= " + repeated(5000, "[a-z]* ")}},
      {{"prompt", "x"}, {"grammar", chain(60, "root ::= a0\n", " ", "\"a\"")}},
      {{"prompt", "x"}, {"max_tokens", 100'000}, {"grammar", "root ::= [a-z ]*"}},
  };
  std::vector<std::jthread> clients;
  for (const json& body : bodies) clients.emplace_back([&] { (void)post(body); });
  // The server, two helpers, and children for two of the requests.
  ASSERT_TRUE(wait_until([&] { return process_tree_size(server_.program.pid()) >= 5; }));
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
  other_.expect_undisturbed();
  watch.expect_limits();
  expect_stops();
}

// ---------------------------------------------------------------- chat templates

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

// Loads models with a hostile chat template, and sends conversations.
class TemplateServer : public ::testing::Test {
 protected:
  void try_template(const std::string& name, const std::string& source) {
    const auto model = with_changes(
        kTestPaths.bundled_model, models_ / (name + ".gguf"),
        [&](auto* file) { gguf_set_val_str(file, "tokenizer.chat_template", source.c_str()); });
    const auto began = Clock::now();
    ASSERT_EQ(server_.load(name), "") << server_.program.stderr_text();
    EXPECT_LT(Clock::now() - began, kTemplateLoadTime);
    json messages = json::array();
    for (int turn = 0; turn < 6; ++turn) {
      messages.push_back({{"role", turn % 2 == 0 ? "user" : "assistant"}, {"content", "Hello"}});
      generate({{"model", name}, {"messages", messages}, {"max_tokens", 2}});
      if (HasFatalFailure()) return;
    }
    // Text is not affected.
    EXPECT_TRUE(generate({{"model", name}, {"prompt", "Once"}, {"max_tokens", 2}}));
    ASSERT_EQ(server_.unload(name), 202);
    std::filesystem::remove(model);
  }
  void expect_limits() {
    other_.expect_undisturbed();
    watch_.expect_limits();
    const auto began = Clock::now();
    server_.program.signal(SIGTERM);
    EXPECT_EQ(server_.program.wait(), 0);
    EXPECT_LT(Clock::now() - began, kStopTime);
  }
  const std::map<std::string, int>& ends() const { return ends_; }

 private:
  // False: it was rejected.
  bool generate(const json& body) {
    httplib::Client client = http_client(server_.url);
    const auto sent = Clock::now();
    const auto response = client.Post("/api/v1/generate", body.dump(), "application/json");
    EXPECT_LT(Clock::now() - sent, kResponseTime);
    if (!response) {
      ADD_FAILURE() << server_.program.stderr_text();
      return false;
    }
    const json reply = json::parse(response->body);
    if (response->status != 202) {
      // 413: the template repeats the messages until the prompt exceeds the context.
      EXPECT_TRUE(response->status == 422 || reply["code"] == "too_long") << reply;
      ++ends_[reply.value("code", "")];
      return false;
    }
    EXPECT_EQ(server_.wait_for_end(reply["id"])["state"], "done");
    ++ends_["done"];
    return true;
  }

  const TempFolder data_;
  const TwoModels models_;
  RunningServer server_{data_.path(), models_.options(), {}, kMemoryLimit};
  Bystander other_{server_, data_.path(), "other"};
  ServerWatch watch_{server_.program.pid(), server_.url};
  std::map<std::string, int> ends_;
};

class UntrustedTemplates
    : public TemplateServer,
      public ::testing::WithParamInterface<std::pair<const char*, std::string>> {};

TEST_P(UntrustedTemplates, AreBounded) {
  try_template("hostile", GetParam().second);
  expect_limits();
}

INSTANTIATE_TEST_SUITE_P(Hostile, UntrustedTemplates, ::testing::ValuesIn(kTemplates),
                         [](const auto& made) { return std::string(made.param.first); });

// ---------------------------------------------------------------- generated cases

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

  // Most nested expressions are errors.
  std::string chat_template() {
    return "{{ messages | length }}" + statement(1 + static_cast<int>(below(4))).substr(0, 200'000);
  }

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
    if (below(8) == 0)
      body["capture"] = json(std::vector<std::string>(
          1 + below(8), times(1 + below(90), below(2) == 0 ? "(.*)*@L" : "(.*)*")));
    if (below(8) == 0) body["capture_bytes"] = below(1 << 16);
    body["ignore_eos"] = below(2) == 0;
    return body;
  }

  std::size_t below(std::size_t limit) { return rng_() % limit; }

 private:
  static std::string times(std::size_t count, std::string_view text) {
    return repeated(count, text);
  }
  int below_depth(std::size_t limit) { return static_cast<int>(below(limit)); }
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
    if (depth == 0) return "{{ " + value(below_depth(3)) + " }}";
    const std::string inner = statement(depth - 1);
    switch (below(7)) {
      case 0:
        return "{% for m in " + value(below_depth(2)) + " %}" + inner + "{% endfor %}";
      case 1:
        return "{% for m in messages recursive %}" + inner + "{{ loop(" + value(below_depth(2)) +
               ") }}{% endfor %}";
      case 2:
        return "{% macro f(x) %}" + inner + "{% endmacro %}{{ f(" + value(below_depth(2)) + ") }}";
      case 3:
        return "{% if " + value(below_depth(3)) + " %}" + inner + "{% endif %}";
      case 4:
        return "{% set n = namespace(s='x') %}{% for i in range(" + std::to_string(large()) +
               ") %}{% set n.s = n.s ~ n.s %}{% endfor %}" + inner;
      case 5: {
        const std::size_t count = std::min<std::size_t>(large(), 1000);
        return times(count, "{% if true %}") + inner + times(count, "{% endif %}");
      }
      default:
        return "{% set x = " + value(below_depth(3)) + " %}" + inner + statement(depth - 1);
    }
  }

  std::mt19937 rng_;
};

TEST_F(UntrustedRequests, GeneratedRequestsAreBounded) {
  const auto [count, seed] = GeneratedCases(60);
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
  other_.expect_undisturbed();
  watch.expect_limits();
  expect_stops();
}

TEST_F(TemplateServer, GeneratedTemplatesAreBounded) {
  const auto [count, seed] = GeneratedCases(10);
  for (std::uint32_t n = 0; n < count; ++n) {
    SCOPED_TRACE(seed + n);
    try_template(std::format("t{}", seed + n), CaseGenerator(seed + n).chat_template());
    if (HasFatalFailure()) return;
  }
  for (const auto& [end, times] : ends()) std::println("{:>4} {}", times, end);
  expect_limits();
}

}  // namespace
}  // namespace tt::test
