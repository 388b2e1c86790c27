#include "api/json/generation_body.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <format>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "api/json/bounded_json.h"
#include "tracer/request/request_bounds.h"
#include "tracer/text/nearest.h"

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

FieldError take_stop(const Json& value, std::vector<std::string>& out) {
  auto expected = std::format("an array of at most {} non-empty strings", kMaxStops);
  if (!value.is_array() || value.size() > kMaxStops) return expected;
  for (const Json& item : value) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) return expected;
    out.push_back(item.get<std::string>());
  }
  return {};
}

FieldError take_messages(const Json& value, std::vector<ChatMessage>& out) {
  std::string expected = std::format(
      "an array of at most {} objects {{\"role\": \"system\" | \"user\" | \"assistant\", "
      "\"content\": \"text\"}}",
      kMaxMessages);
  if (!value.is_array() || value.size() > kMaxMessages) return expected;
  for (const Json& item : value) {
    if (!item.is_object() || item.size() != 2 || !item.contains("role") ||
        !item.contains("content") || !item["role"].is_string() || !item["content"].is_string())
      return expected;
    auto role = item["role"].get<std::string>();
    if (role != "system" && role != "user" && role != "assistant") return expected;
    out.push_back({.role = std::move(role), .content = item["content"].get<std::string>()});
  }
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

// One entry per field: its name and its parser.
struct Field {
  std::string_view name;
  FieldError (*take)(const Json& value, GenerationBody& out);
};

constexpr std::array kFields = {
    Field{"prompt", [](const Json& v,
                       GenerationBody& b) { return take_prompt(v, b.request.prompt, take_text); }},
    Field{"messages",
          [](const Json& v, GenerationBody& b) {
            return take_prompt(v, b.request.prompt, take_messages);
          }},
    Field{"tokens",
          [](const Json& v, GenerationBody& b) {
            return take_prompt(v, b.request.prompt, take_tokens);
          }},
    Field{"model", [](const Json& v, GenerationBody& b) { return take_name(v, b.model); }},
    Field{"stream", [](const Json& v, GenerationBody& b) { return take_bool(v, b.stream); }},
    Field{"max_tokens",
          [](const Json& v, GenerationBody& b) {
            return take_integer(v, b.request.max_tokens, bounds_of("max_tokens"));
          }},
    Field{"temperature",
          [](const Json& v, GenerationBody& b) {
            return take_number(v, b.request.sampling.temperature, bounds_of("temperature"));
          }},
    Field{"top_k",
          [](const Json& v, GenerationBody& b) {
            return take_integer(v, b.request.sampling.top_k, bounds_of("top_k"));
          }},
    Field{"top_p",
          [](const Json& v, GenerationBody& b) {
            return take_number(v, b.request.sampling.top_p, bounds_of("top_p"));
          }},
    Field{"min_p",
          [](const Json& v, GenerationBody& b) {
            return take_number(v, b.request.sampling.min_p, bounds_of("min_p"));
          }},
    Field{"repeat_penalty",
          [](const Json& v, GenerationBody& b) {
            return take_number(v, b.request.sampling.repeat_penalty, bounds_of("repeat_penalty"));
          }},
    Field{"repeat_last_n",
          [](const Json& v, GenerationBody& b) {
            return take_integer(v, b.request.sampling.repeat_last_n, bounds_of("repeat_last_n"));
          }},
    Field{"seed",
          [](const Json& v, GenerationBody& b) {
            return take_integer(v, b.request.sampling.seed, bounds_of("seed"));
          }},
    Field{"grammar",
          [](const Json& v, GenerationBody& b) {
            return take_rules(v, b.request.sampling.grammar, kMaxGrammarBytes);
          }},
    Field{"stop", [](const Json& v, GenerationBody& b) { return take_stop(v, b.request.stop); }},
    Field{"ignore_eos",
          [](const Json& v, GenerationBody& b) { return take_bool(v, b.request.ignore_eos); }},
    Field{"reuse_prefix",
          [](const Json& v, GenerationBody& b) { return take_bool(v, b.request.reuse_prefix); }},
    Field{"level", [](const Json& v, GenerationBody& b) { return take_level(v, b.request.level); }},
    Field{"timing",
          [](const Json& v, GenerationBody& b) { return take_timing(v, b.request.exact_timing); }},
    Field{"minor_faults",
          [](const Json& v, GenerationBody& b) { return take_bool(v, b.request.minor_faults); }},
    Field{"residency_interval_ms",
          [](const Json& v, GenerationBody& b) {
            return take_integer(v, b.request.residency_interval_ms,
                                bounds_of("residency_interval_ms"));
          }},
    Field{"stats_pattern",
          [](const Json& v, GenerationBody& b) {
            return take_rules(v, b.request.stats_pattern, kMaxPatternBytes);
          }},
};

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
    const auto* field = std::ranges::find(kFields, std::string_view(name), &Field::name);
    if (field == kFields.end()) {
      return reject(ErrorCode::BadRequest,
                    unknown_name("field", shortened(name),
                                 kFields | std::views::transform(&Field::name) |
                                     std::ranges::to<std::vector<std::string>>()));
    }
    if (const FieldError expected = field->take(value, out))
      return reject(ErrorCode::BadRequest, std::format("\"{}\" must be {}.", name, *expected));
    prompts += field < kFields.begin() + 3 ? 1 : 0;
  }
  if (prompts != 1)
    return reject(ErrorCode::BadRequest,
                  R"(Set exactly one of "prompt", "messages" and "tokens".)");
  return out;
}

}  // namespace tt
