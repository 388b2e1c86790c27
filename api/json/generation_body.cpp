#include "api/json/generation_body.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <format>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "api/json/bounded_json.h"
#include "tracer/request/request_bounds.h"
#include "tracer/request/sampling.h"
#include "tracer/text/nearest.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

// Describes the expected value for the error message; nullopt if the value was accepted.
using FieldError = std::optional<std::string>;

// Int: an integer, or an optional one.
template <class Int>
FieldError take_integer(const Json& value, Int& out, const NumberBounds& bounds) {
  const auto min = static_cast<std::int64_t>(bounds.min);
  const auto max = static_cast<std::int64_t>(bounds.max);
  if (value.is_number_integer()) {
    // Unsigned values above the int64 range would wrap to negative ones.
    const bool huge = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
    const auto number = value.get<std::int64_t>();
    if (!huge && number >= min && number <= max) {
      out = static_cast<Int>(number);
      return {};
    }
  }
  return std::format("an integer from {} to {}", min, max);
}

FieldError take_number(const Json& value, float& out, const NumberBounds& bounds) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (number >= bounds.min && number <= bounds.max) {
      out = static_cast<float>(number);
      return {};
    }
  }
  return std::format("a number from {} to {}", bounds.min, bounds.max);
}

FieldError take_bool(const Json& value, bool& out) {
  if (!value.is_boolean()) return "true or false";
  out = value.get<bool>();
  return {};
}

FieldError take_text(const Json& value, std::string& out) {
  if (!value.is_string()) return "a string";
  out = value.get<std::string>();
  return {};
}

FieldError take_rules(const Json& value, std::string& out, std::size_t max_bytes) {
  if (take_text(value, out) || out.size() > max_bytes)
    return std::format("a string of at most {} bytes", max_bytes);
  return {};
}

FieldError take_name(const Json& value, std::string& out) {
  if (take_text(value, out) || out.empty()) return "a model id";
  return {};
}

// `what`: of what the texts are, after "non-empty strings ".
FieldError take_texts(const Json& value, std::vector<std::string>& out, std::size_t most,
                      std::string_view what = {}) {
  auto expected = std::format("an array of at most {} non-empty strings{}{}", most,
                              what.empty() ? "" : " ", what);
  if (!value.is_array() || value.size() > most) return expected;
  for (const Json& item : value) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) return expected;
    out.push_back(item.get<std::string>());
  }
  return {};
}

// Each of the fields makes the request one that can be stopped.
DebugOptions& debug_of(GenerationBody& body) {
  if (!body.request.debug) body.request.debug.emplace();
  return *body.request.debug;
}

// The text of `content`: a text, typed parts with a text each, or null; nullopt: something else.
std::optional<std::string> content_text(const Json& content) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return {};
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || part.value("type", Json()) != "text" ||
        !part.value("text", Json()).is_string())
      return {};
    if (!text.empty()) text += '\n';
    text += part["text"].get<std::string>();
  }
  return text;
}

// Functions with a name each, as `tools` or, with `inside`, as `tool_calls`.
bool are_functions(const Json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const Json& one) {
           return one.is_object() && one.value("type", Json()) == "function" &&
                  one.value("function", Json()).is_object() &&
                  one["function"].value("name", Json()).is_string();
         });
}

// Arguments of a call: an object, or the JSON text of one.
bool has_arguments(const Json& call) {
  const Json& function = call["function"];
  if (!function.contains("arguments")) return false;
  const Json& given = function["arguments"];
  return given.is_object() ||
         (given.is_string() && nlohmann::json::accept(given.get_ref<const std::string&>()));
}

FieldError take_messages(const Json& value, Conversation& out) {
  std::string expected = std::format(
      "an array of at most {} objects {{\"role\": \"system\" | \"developer\" | \"user\" | "
      "\"assistant\" | \"tool\", \"content\": \"text\"}}; also possible: content as "
      "[{{\"type\": \"text\", \"text\": \"...\"}}] or null, \"reasoning_content\", \"name\", "
      "\"tool_call_id\" (texts) and \"tool_calls\" ([{{\"type\": \"function\", \"function\": "
      "{{\"name\": \"...\", \"arguments\": an object or its JSON}}}}])",
      kMaxMessages);
  if (!value.is_array() || value.size() > kMaxMessages) return expected;
  for (const Json& item : value) {
    if (!item.is_object() || !item.contains("role") || !item["role"].is_string()) return expected;
    const bool calls = item.contains("tool_calls");
    if (!item.contains("content") && !calls) return expected;
    auto role = item["role"].get<std::string>();
    if (role != "system" && role != "developer" && role != "user" && role != "assistant" &&
        role != "tool")
      return expected;
    auto text = content_text(item.value("content", Json()));
    if (!text) return expected;
    if (calls && (!are_functions(item["tool_calls"]) ||
                  !std::ranges::all_of(item["tool_calls"], has_arguments)))
      return expected;
    for (const auto& [name, field] : item.items()) {
      if (name == "role" || name == "content" || name == "tool_calls") continue;
      if (name != "reasoning_content" && name != "name" && name != "tool_call_id") return expected;
      if (!field.is_string()) return expected;
    }
    const bool plain = item.size() == 2 && item.contains("content") && item["content"].is_string();
    out.messages.push_back({.role = std::move(role),
                            .content = *std::move(text),
                            .json = plain ? std::string() : text_of(item)});
  }
  return {};
}

FieldError take_tools(const Json& value, std::string& out) {
  if (!are_functions(value))
    return "an array of objects {\"type\": \"function\", \"function\": {\"name\": \"...\", "
           "\"description\": \"...\", \"parameters\": a JSON schema}}";
  out = value.empty() ? std::string() : text_of(value);
  return {};
}

FieldError take_arguments(const Json& value, std::string& out) {
  if (!value.is_object()) return "an object: variables of the chat template";
  out = text_of(value);
  return {};
}

FieldError take_tokens(const Json& value, std::vector<std::int32_t>& out) {
  std::string expected = "an array of token ids (integers from 0)";
  if (!value.is_array()) return expected;
  out.reserve(value.size());
  for (const Json& item : value) {
    std::int32_t id = 0;
    if (take_integer(item, id, kTokenBounds)) return expected;
    out.push_back(id);
  }
  return {};
}

FieldError take_level(const Json& value, Level& out) {
  for (const Level level : {Level::Off, Level::Minimal, Level::Detailed, Level::Verbose}) {
    if (value == to_text(level)) {
      out = level;
      return {};
    }
  }
  return R"("off", "minimal", "detailed" or "verbose")";
}

FieldError take_timing(const Json& value, bool& exact) {
  if (value != "fast" && value != "exact") return R"("fast" or "exact")";
  exact = value == "exact";
  return {};
}

template <class T>
FieldError take_prompt(const Json& value, Prompt& out, FieldError (*take)(const Json&, T&)) {
  T prompt;
  FieldError error = take(value, prompt);
  out = std::move(prompt);
  return error;
}

FieldError take_samplers(const Json& value, std::vector<SamplerKind>& out) {
  std::expected<std::vector<SamplerKind>, std::string> parsed;
  if (value.is_string()) {
    parsed = parse_sampler_letters(value.get_ref<const std::string&>());
  } else if (value.is_array() && value.size() <= kMaxSamplers) {
    for (const Json& item : value) {
      if (!item.is_string()) return "an array of names of samplers";
      const auto kind = parse_sampler(item.get_ref<const std::string&>());
      if (!kind) return std::format("an array of names of samplers: {}", kind.error());
      parsed->push_back(*kind);
    }
  } else {
    return std::format("an array of at most {} names of samplers, or a string of their letters",
                       kMaxSamplers);
  }
  if (!parsed) return std::format("an array of names, or a string, which {}", parsed.error());
  out = *std::move(parsed);
  return {};
}

FieldError take_breakers(const Json& value, std::vector<std::string>& out) {
  auto expected =
      std::format("an array of 1 to {} strings of 1 to {} bytes", kMaxBreakers, kMaxBreakerBytes);
  if (!value.is_array() || value.empty() || value.size() > kMaxBreakers) return expected;
  out.clear();
  for (const Json& item : value) {
    if (!item.is_string()) return expected;
    out.push_back(item.get<std::string>());
    if (out.back().empty() || out.back().size() > kMaxBreakerBytes) return expected;
    if (out.back().contains('\0')) return expected;
  }
  return {};
}

// A number, or false: the token is never chosen.
bool take_bias(const Json& value, float& out) {
  if (value.is_boolean() && !value.get<bool>()) {
    out = -std::numeric_limits<float>::infinity();
    return true;
  }
  return !take_number(value, out, kBiasBounds);
}

// As llama-server: an array of [token, bias], or an object {"token": bias}. A token is an id or a
// text; a name of the object that is a number is an id.
FieldError take_logit_bias(const Json& value, std::vector<LogitBias>& out) {
  auto expected = std::format(
      "an array of at most {} pairs [token, bias], or an object {{\"token\": bias}}. A token is an "
      "id or a text, a bias a number from {} to {} or false",
      kMaxLogitBiases, kBiasBounds.min, kBiasBounds.max);
  if (value.size() > kMaxLogitBiases) return expected;
  const auto text_token = [](const std::string& text, LogitBias& bias) {
    bias.token = text;
    return !text.empty() && text.size() <= kMaxBiasTextBytes;
  };
  if (value.is_object()) {
    for (const auto& [name, number] : value.items()) {
      LogitBias bias;
      if (const auto id = parse_number<std::uint32_t>(name); id && *id <= kTokenBounds.max)
        bias.token = static_cast<std::int32_t>(*id);
      else if (!text_token(name, bias))
        return expected;
      if (!take_bias(number, bias.bias)) return expected;
      out.push_back(std::move(bias));
    }
    return {};
  }
  if (!value.is_array()) return expected;
  for (const Json& item : value) {
    LogitBias bias;
    if (!item.is_array() || item.size() != 2) return expected;
    if (item[0].is_string()) {
      if (!text_token(item[0].get_ref<const std::string&>(), bias)) return expected;
    } else if (std::int32_t id = 0; !take_integer(item[0], id, kTokenBounds)) {
      bias.token = id;
    } else {
      return expected;
    }
    if (!take_bias(item[1], bias.bias)) return expected;
    out.push_back(std::move(bias));
  }
  return {};
}

FieldError take_sampling(const Json& value, Sampling& out, const SamplingField& field) {
  return std::visit(
      [&](auto member) -> FieldError {
        if constexpr (std::is_same_v<decltype(member), std::int32_t Sampling::*>)
          return take_integer(value, out.*member, field.bounds());
        else
          return take_number(value, out.*member, field.bounds());
      },
      field.member);
}

// One entry per field, except the numbers of kSamplingFields: its name and its parser.
using V = const Json&;
using Body = GenerationBody&;
struct Field {
  std::string_view name;
  FieldError (*take)(V value, Body out);
};

constexpr std::array kFields = {
    Field{"prompt", [](V v, Body b) { return take_prompt(v, b.request.prompt, take_text); }},
    Field{"messages", [](V v, Body b) { return take_prompt(v, b.request.prompt, take_messages); }},
    Field{"tokens", [](V v, Body b) { return take_prompt(v, b.request.prompt, take_tokens); }},
    Field{"tools", [](V v, Body b) { return take_tools(v, b.tools); }},
    Field{"chat_template_kwargs",
          [](V v, Body b) { return take_arguments(v, b.chat_template_kwargs); }},
    Field{"model", [](V v, Body b) { return take_name(v, b.model); }},
    Field{"stream", [](V v, Body b) { return take_bool(v, b.stream); }},
    Field{
        "max_tokens",
        [](V v, Body b) { return take_integer(v, b.request.max_tokens, bounds_of("max_tokens")); }},
    Field{"samplers", [](V v, Body b) { return take_samplers(v, b.request.sampling.samplers); }},
    Field{"dry_sequence_breakers",
          [](V v, Body b) { return take_breakers(v, b.request.sampling.dry_sequence_breakers); }},
    Field{"logit_bias",
          [](V v, Body b) { return take_logit_bias(v, b.request.sampling.logit_bias); }},
    Field{"seed",
          [](V v, Body b) { return take_integer(v, b.request.sampling.seed, bounds_of("seed")); }},
    Field{"grammar",
          [](V v, Body b) { return take_rules(v, b.request.sampling.grammar, kMaxGrammarBytes); }},
    Field{"stop", [](V v, Body b) { return take_texts(v, b.request.stop, kMaxStops); }},
    Field{"ignore_eos", [](V v, Body b) { return take_bool(v, b.request.ignore_eos); }},
    Field{"reuse_prefix", [](V v, Body b) { return take_bool(v, b.request.reuse_prefix); }},
    Field{"level", [](V v, Body b) { return take_level(v, b.request.level); }},
    Field{"timing", [](V v, Body b) { return take_timing(v, b.request.exact_timing); }},
    Field{"minor_faults", [](V v, Body b) { return take_bool(v, b.request.minor_faults); }},
    Field{"residency_interval_ms",
          [](V v, Body b) {
            return take_integer(v, b.request.residency_interval_ms,
                                bounds_of("residency_interval_ms"));
          }},
    Field{"stats_pattern",
          [](V v, Body b) { return take_rules(v, b.request.stats_pattern, kMaxPatternBytes); }},
    Field{"capture",
          [](V v, Body b) {
            return take_texts(v, b.request.capture, kMaxCaptures,
                              "PATTERN[@L..][@T..][@S..][@I..][@RN][@KN][@F16]");
          }},
    Field{"capture_bytes",
          [](V v, Body b) {
            return take_integer(v, b.request.capture_bytes, bounds_of("capture_bytes"));
          }},
    Field{"breakpoints",
          [](V v, Body b) {
            return take_texts(v, debug_of(b).breakpoints, kMaxBreakpoints,
                              "such as \"l_out layer 3\"");
          }},
    Field{"stop_at_first_op",
          [](V v, Body b) { return take_bool(v, debug_of(b).stop_at_first_op); }},
    Field{"hold_ms",
          [](V v, Body b) { return take_integer(v, debug_of(b).hold_ms, bounds_of("hold_ms")); }},
};

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const Field& field : kFields) names.emplace_back(field.name);
  for (const SamplingField& field : kSamplingFields) names.emplace_back(field.name);
  return names;
}

// Fields of a request to llama-server that have another name here, or none.
struct ForeignField {
  std::string_view name, instead;
};
constexpr std::array kForeignFields = {
    ForeignField{"cache_prompt", "Use \"reuse_prefix\"."},
    ForeignField{"n_predict", "Use \"max_tokens\"."},
    ForeignField{"max_completion_tokens", "Use \"max_tokens\"."},
    ForeignField{"n_probs", "Probabilities of tokens are not recorded."},
    ForeignField{"logprobs", "Probabilities of tokens are not recorded."},
    ForeignField{"json_schema", "Use \"grammar\", with the schema as a grammar (GBNF)."},
    ForeignField{"response_format", "Use \"grammar\", with the format as a grammar (GBNF)."},
    ForeignField{"tool_choice", "\"tools\" are only put into the prompt: leave it out."},
    ForeignField{"id_slot", "Requests run one after the other: leave it out."},
};

std::string unknown_field(std::string_view name) {
  const auto* foreign = std::ranges::find(kForeignFields, name, &ForeignField::name);
  return foreign == kForeignFields.end()
             ? unknown_name("field", shortened(name), field_names())
             : std::format("Unknown field \"{}\". {}", name, foreign->instead);
}

}  // namespace

std::expected<GenerationBody, Problem> parse_generation_body(std::string_view body) {
  const auto reject = [](ErrorCode error_code, std::string detail) {
    return std::unexpected(Problem{error_code, std::move(detail)});
  };
  const auto json =
      parse_json_body(body, R"(The body must be a JSON object, for example {"prompt": "Hello"}.)");
  if (!json) return std::unexpected(json.error());

  GenerationBody out;
  int prompts = 0;
  for (const auto& [name, value] : json->items()) {
    FieldError expected;
    const auto* field = std::ranges::find(kFields, std::string_view(name), &Field::name);
    if (field != kFields.end()) {
      expected = field->take(value, out);
    } else if (const auto* number =
                   std::ranges::find(kSamplingFields, std::string_view(name), &SamplingField::name);
               number != kSamplingFields.end()) {
      expected = take_sampling(value, out.request.sampling, *number);
    } else {
      return reject(ErrorCode::BadRequest, unknown_field(name));
    }
    if (expected)
      return reject(ErrorCode::BadRequest, std::format("\"{}\" must be {}.", name, *expected));
    prompts += field < kFields.begin() + 3 ? 1 : 0;
  }
  if (prompts != 1)
    return reject(ErrorCode::BadRequest,
                  R"(Set exactly one of "prompt", "messages" and "tokens".)");
  if (auto* conversation = std::get_if<Conversation>(&out.request.prompt)) {
    conversation->tools = std::move(out.tools);
    conversation->arguments = std::move(out.chat_template_kwargs);
  } else if (!out.tools.empty() || !out.chat_template_kwargs.empty()) {
    return reject(ErrorCode::BadRequest,
                  R"("tools" and "chat_template_kwargs" are for "messages" only.)");
  }
  return out;
}

}  // namespace tt
