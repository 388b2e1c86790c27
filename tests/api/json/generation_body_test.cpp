#include "api/json/generation_body.h"

#include <gtest/gtest.h>

#include <format>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "api/openapi/openapi.h"

namespace tt {
namespace {

TEST(GenerationBody, AcceptsEveryField) {
  const auto request = parse_generation_body(R"({
    "prompt": "Grüße", "model": "pocket", "stream": true, "max_tokens": 7, "temperature": 0, "top_k": 5, "top_p": 0.5,
    "min_p": 0, "repeat_penalty": 1.5, "repeat_last_n": -1, "seed": 4294967294,
    "grammar": "root ::= \"a\"", "stop": ["\n", "END"], "ignore_eos": true,
    "reuse_prefix": false, "level": "verbose", "timing": "exact", "minor_faults": true, "stats_pattern": "ffn.*",
    "capture": ["l_out@L0-3", "Qcur"], "capture_bytes": 4096,
    "breakpoints": ["l_out layer 3"], "stop_at_first_op": true, "hold_ms": 500})");
  ASSERT_TRUE(request.has_value()) << request.error().detail;
  EXPECT_EQ(std::get<std::string>(request->request.prompt), "Grüße");
  EXPECT_EQ(request->request.max_tokens, 7u);
  EXPECT_EQ(request->request.sampling.temperature, 0.0F);
  EXPECT_EQ(request->request.sampling.top_k, 5);
  EXPECT_EQ(request->request.sampling.top_p, 0.5F);
  EXPECT_EQ(request->request.sampling.min_p, 0.0F);
  EXPECT_EQ(request->request.sampling.repeat_penalty, 1.5F);
  EXPECT_EQ(request->request.sampling.repeat_last_n, -1);
  EXPECT_EQ(request->request.sampling.seed, 4294967294u);
  EXPECT_EQ(request->request.sampling.grammar, "root ::= \"a\"");
  EXPECT_EQ(request->request.stop, (std::vector<std::string>{"\n", "END"}));
  EXPECT_TRUE(request->request.ignore_eos);
  EXPECT_FALSE(request->request.reuse_prefix);
  EXPECT_EQ(request->request.level, Level::Verbose);
  EXPECT_TRUE(request->request.exact_timing);
  EXPECT_TRUE(request->request.minor_faults);
  EXPECT_EQ(request->request.stats_pattern, "ffn.*");
  EXPECT_EQ(request->request.capture, (std::vector<std::string>{"l_out@L0-3", "Qcur"}));
  EXPECT_EQ(request->request.capture_bytes, 4096U);
  ASSERT_TRUE(request->request.debug.has_value());
  EXPECT_EQ(request->request.debug->breakpoints, std::vector<std::string>{"l_out layer 3"});
  EXPECT_TRUE(request->request.debug->stop_at_first_op);
  EXPECT_EQ(request->request.debug->hold_ms, 500U);
  EXPECT_EQ(request->model, "pocket");
  EXPECT_TRUE(request->stream);
}

TEST(GenerationBody, AcceptsEverySamplingNumberAtItsBounds) {
  for (const SamplingField& field : kSamplingFields) {
    SCOPED_TRACE(field.name);
    for (const double value : {field.min, field.max}) {
      const auto body = [&](double number) {
        const bool whole = std::holds_alternative<std::int32_t Sampling::*>(field.member);
        const nlohmann::json json =
            whole ? nlohmann::json(static_cast<std::int64_t>(number)) : nlohmann::json(number);
        return parse_generation_body(nlohmann::json{{"prompt", "a"}, {field.name, json}}.dump());
      };
      const auto taken = body(value);
      ASSERT_TRUE(taken.has_value()) << taken.error().detail;
      std::visit(
          [&](auto member) {
            const auto& sampling = taken->request.sampling;
            EXPECT_EQ(sampling.*member,
                      static_cast<std::decay_t<decltype(sampling.*member)>>(value));
          },
          field.member);
      EXPECT_FALSE(body(value == field.min ? value - 1 : value + 1).has_value());
    }
  }
}

// With the forms and spellings of llama-server.
TEST(GenerationBody, AcceptsSamplersBreakersAndBiases) {
  const auto sampling = [](const char* field) {
    const auto body = parse_generation_body(std::string(R"({"prompt": "a", )") + field + "}");
    if (!body) ADD_FAILURE() << body.error().detail;
    return body ? body->request.sampling : Sampling{};
  };
  EXPECT_EQ(
      samplers_text(sampling(R"("samplers": ["top_k", "min-p", "TEMP", "typ", "xtc"])").samplers),
      "top_k;min_p;temperature;typ_p;xtc");
  EXPECT_EQ(samplers_text(sampling(R"("samplers": "edskypmxta")").samplers),
            "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p");
  EXPECT_TRUE(sampling(R"("samplers": [])").samplers.empty());
  EXPECT_EQ(sampling(R"("dry_sequence_breakers": ["\n", "ä"])").dry_sequence_breakers,
            (std::vector<std::string>{"\n", "ä"}));
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(sampling(R"("logit_bias": [[5, 1.5], ["the", -2], [7, false]])").logit_bias,
            (std::vector<LogitBias>{{5, 1.5F}, {"the", -2}, {7, kNever}}));
  EXPECT_EQ(sampling(R"("logit_bias": {"5": 1.5, "the": false})").logit_bias,
            (std::vector<LogitBias>{{5, 1.5F}, {"the", kNever}}));
  EXPECT_EQ(sampling(R"("seed": -1)").seed, Sampling{}.seed);
}

TEST(GenerationBody, AcceptsThreeKindsOfPrompt) {
  const auto messages = parse_generation_body(
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]})");
  ASSERT_TRUE(messages.has_value());
  EXPECT_EQ(std::get<Conversation>(messages->request.prompt).messages,
            (std::vector<ChatMessage>{{"system", "s"}, {"user", "u"}}));
  // As in llama-server: a message without text, but not one without the field.
  const auto empty = parse_generation_body(R"({"messages": [{"role": "user", "content": null}]})");
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ(std::get<Conversation>(empty->request.prompt).messages.at(0).content, "");
  const auto tokens = parse_generation_body(R"({"tokens": [0, 5, 2147483647]})");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(std::get<std::vector<std::int32_t>>(tokens->request.prompt),
            (std::vector<std::int32_t>{0, 5, 2147483647}));
  // Omitted fields have the defaults of llama.cpp.
  EXPECT_EQ(tokens->request.max_tokens, GenerationRequest{}.max_tokens);
  EXPECT_EQ(tokens->request.level, Level::Detailed);
}

// The documented defaults of omitted fields.
TEST(GenerationBody, DefaultsMatchOpenApi) {
  const auto fields = nlohmann::json::parse(
      openapi_json())["components"]["schemas"]["GenerateRequest"]["properties"];
  const GenerationRequest none;
  EXPECT_EQ(fields["max_tokens"]["default"], none.max_tokens);
  for (const SamplingField& field : kSamplingFields) {
    SCOPED_TRACE(field.name);
    const nlohmann::json& documented = fields[std::string(field.name)];
    std::visit(
        [&](auto member) {
          EXPECT_EQ(documented["default"].get<std::decay_t<decltype(none.sampling.*member)>>(),
                    none.sampling.*member);
        },
        field.member);
    EXPECT_EQ(documented["minimum"].get<double>(), field.min);
    EXPECT_EQ(documented["maximum"].get<double>(), field.max);
    EXPECT_EQ(documented["description"].get<std::string>(), field.help);
  }
  EXPECT_EQ(fields["dry_sequence_breakers"]["default"], none.sampling.dry_sequence_breakers);
  std::string order;
  for (const auto& name : fields["samplers"]["default"])
    order += (order.empty() ? "" : ";") + name.get<std::string>();
  EXPECT_EQ(order, samplers_text(none.sampling.samplers));
  EXPECT_EQ(fields["ignore_eos"]["default"], none.ignore_eos);
  EXPECT_EQ(fields["reuse_prefix"]["default"], none.reuse_prefix);
  EXPECT_EQ(fields["level"]["default"], to_text(none.level));
  EXPECT_EQ(fields["timing"]["default"], none.exact_timing ? "exact" : "fast");
  EXPECT_EQ(fields["stats_pattern"]["default"], none.stats_pattern);
  EXPECT_EQ(fields["capture_bytes"]["default"], none.capture_bytes);
  EXPECT_FALSE(none.debug.has_value());
  EXPECT_EQ(fields["hold_ms"]["default"], DebugOptions{}.hold_ms);
  EXPECT_EQ(fields["stop_at_first_op"]["default"], DebugOptions{}.stop_at_first_op);
}

std::string repeat(std::size_t count, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

// An object of `count` fields.
std::string many(int count, const std::string& field) {
  std::string all = "{";
  for (int i = 0; i < count; ++i)
    all += (i > 0 ? "," : "") + std::vformat(field, std::make_format_args(i));
  return all + "}";
}

TEST(GenerationBody, RejectsInvalidFieldsWithExpectedValues) {
  struct Case {
    std::string body;
    const char* code;
    const char* expected_text;  // substring of the detail
  };
  const Case cases[] = {
      {"", "bad_json", "JSON object"},
      {"{", "bad_json", "JSON object"},
      {"[]", "bad_json", "JSON object"},
      {"\"text\"", "bad_json", "JSON object"},
      {"{\"prompt\": \"\xff\"}", "bad_json", "JSON object"},
      {std::string(1 << 20, '['), "bad_json", "more than 64 nested arrays and objects"},
      {R"({"a": )" + std::string(100, '[') + std::string(100, ']') + "}", "bad_json",
       "more than 64 nested"},
      {many(65, "\"k{}\": 1"), "bad_json", "more than 64 fields in one object"},
      {R"({"tokens": [1)" + repeat(1'000'000, ",1") + "]}", "bad_json", "more than 1000000 values"},
      {R"({"messages": [{})" + repeat(4096, ",{}") + "]}", "bad_request",
       "an array of at most 4096 objects"},
      {R"({})", "bad_request", "exactly one of"},
      {R"({"samplers": ["top_q"]})", "bad_request", "unknown sampler \"top_q\"; known: penalties"},
      {R"({"samplers": "kz"})", "bad_request", "k (top_k)"},
      {R"({"samplers": 3})", "bad_request", "names of samplers"},
      {R"({"dry_sequence_breakers": []})", "bad_request", "1 to 32 strings of 1 to 40 bytes"},
      {R"({"dry_sequence_breakers": ["a", ""]})", "bad_request", "1 to 32 strings"},
      {R"({"dry_sequence_breakers": ["a\u0000"]})", "bad_request", "1 to 32 strings"},
      {R"({"logit_bias": [[1]]})", "bad_request", "pairs [token, bias]"},
      {R"({"logit_bias": [[-1, 1]]})", "bad_request", "pairs [token, bias]"},
      {R"({"logit_bias": [["", 1]]})", "bad_request", "pairs [token, bias]"},
      {R"({"logit_bias": {"a": 1e5}})", "bad_request", "from -10000 to 10000 or false"},
      {R"({"logit_bias": {"a": true}})", "bad_request", "from -10000 to 10000 or false"},
      {R"({"logit_bias": 3})", "bad_request", "pairs [token, bias]"},
      {R"({"prompt": "a", "tokens": [1]})", "bad_request", "exactly one of"},
      {R"({"prompt": "a", "tempeature": 1})", "bad_request", "\"tempeature\""},
      {R"({"prompt": "a", "tempeature": 1})", "bad_request", "top_k, top_p"},
      {R"({"prompt": 1})", "bad_request", "\"prompt\" must be a string"},
      {R"({"prompt": null})", "bad_request", "\"prompt\" must be a string"},
      {R"({"messages": "a"})", "bad_request", "\"messages\" must be an array"},
      {R"({"messages": [{"role": "robot", "content": ""}]})", "bad_request", "\"system\""},
      {R"({"messages": [{"role": "user"}]})", "bad_request", "\"content\""},
      {R"({"messages": [{"role": "user", "content": "", "x": 1}]})", "bad_request", "\"role\""},
      {R"({"tokens": [1.5]})", "bad_request", "array of token ids"},
      {R"({"tokens": [-1]})", "bad_request", "array of token ids"},
      {R"({"tokens": [2147483648]})", "bad_request", "array of token ids"},
      {R"({"prompt": "a", "model": ""})", "bad_request", "\"model\" must be a model id"},
      {R"({"prompt": "a", "model": 7})", "bad_request", "\"model\" must be a model id"},
      {R"({"prompt": "a", "stream": 1})", "bad_request", "true or false"},
      {R"({"prompt": "a", "max_tokens": -1})", "bad_request", "integer from 0"},
      {R"({"prompt": "a", "max_tokens": 1e3})", "bad_request", "integer from 0"},
      {R"({"prompt": "a", "max_tokens": 18446744073709551615})", "bad_request", "integer from 0"},
      {R"({"prompt": "a", "temperature": -0.1})", "bad_request", "number from 0"},
      {R"({"prompt": "a", "temperature": "0"})", "bad_request", "number from 0"},
      {R"({"prompt": "a", "top_p": 1.01})", "bad_request", "from 0 to 1"},
      {R"({"prompt": "a", "repeat_penalty": 0})", "bad_request", "\"repeat_penalty\""},
      {R"({"prompt": "a", "repeat_last_n": -2})", "bad_request", "from -1"},
      {R"({"prompt": "a", "seed": 4294967296})", "bad_request", "to 4294967295"},
      {R"({"prompt": "a", "stop": "x"})", "bad_request", "array of at most 32"},
      {R"({"prompt": "a", "stop": [""]})", "bad_request", "non-empty"},
      {R"({"prompt": "a", "ignore_eos": 1})", "bad_request", "true or false"},
      {R"({"prompt": "a", "level": "high"})", "bad_request", "\"minimal\""},
      {R"({"prompt": "a", "timing": true})", "bad_request", "\"fast\" or \"exact\""},
      {R"({"prompt": "a", "capture": "l_out"})", "bad_request",
       "array of at most 8 non-empty strings"},
      {R"({"prompt": "a", "capture": [7]})", "bad_request", "array of at most 8 non-empty strings"},
      {R"({"prompt": "a", "capture": [""]})", "bad_request",
       "array of at most 8 non-empty strings"},
      {R"({"prompt": "a", "capture_bytes": -1})", "bad_request", "integer from 0"},
      {R"({"prompt": "a", "breakpoints": [""]})", "bad_request",
       "array of at most 32 non-empty strings"},
      {R"({"prompt": "a", "hold_ms": 0})", "bad_request", "integer from 1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body.substr(0, 80));
    const auto request = parse_generation_body(c.body);
    ASSERT_FALSE(request.has_value());
    EXPECT_STREQ(code_of(request.error().error_code), c.code);
    EXPECT_EQ(status_of(request.error().error_code), 400);
    EXPECT_NE(request.error().detail.find(c.expected_text), std::string::npos)
        << request.error().detail;
  }
}

TEST(GenerationBody, RejectsDeepNesting) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(parse_generation_body(deep).has_value());
  EXPECT_FALSE(parse_generation_body("{\"prompt\":" + deep).has_value());
}

}  // namespace
}  // namespace tt
