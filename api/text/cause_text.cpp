#include "api/text/cause_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <format>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/text/join.h"

namespace tt {

namespace {

struct Words {
  const char* title;
  const char* reason;
};
// In the order of DifferenceKind.
constexpr std::array kWords = {
    Words{"Changed at a breakpoint", ""},
    Words{"Other model", ""},
    Words{"Other settings", ""},
    Words{"Other recording", "Exact timing and higher levels make every op slower."},
    Words{"Other request", ""},
    Words{"Reused prefix", "Reused tokens are not evaluated."},
    Words{"New graphs", "The recording slows down the step in which a graph appears first."},
    Words{"The machine held up a session", "Its times are not those of the model alone."},
    Words{"Other machine", ""},
    Words{"Other version of llama.cpp", ""},
};

// Facts whose names are not their words.
constexpr std::pair<std::string_view, const char*> kLabels[] = {
    {"context.size", "context size"},
    {"context.batch", "batch size"},
    {"context.ubatch", "physical batch size"},
    {"context.cache_type_k", "type of K in the KV cache"},
    {"context.cache_type_v", "type of V in the KV cache"},
    {"context.swa_full", "full cache for layers with a sliding window"},
    {"context.repack", "repacked weights"},
    {"context.mmap", "mapped model file"},
    {"context.mlock", "locked memory"},
    {"context.gpu_layers", "layers on the GPU"},
    {"context.memory_budget", "memory budget (bytes)"},
    {"host.cpu", "processor"},
    {"host.cpu_limit", "processor limit"},
    {"host.memory_limit", "origin of the memory limit"},
    {"host.memory_limit_bytes", "memory limit (bytes)"},
    {"host.ram_bytes", "memory (bytes)"},
    {"library.ggml_commit", "commit of ggml"},
    {"library.features", "processor features"},
    {"library.tested", "tested with tensor-trace"},
    {"machine", "machine"},
    {"model.bytes", "size of the files (bytes)"},
    {"request.prompt", "prompt text"},
    {"request.repeat_last_n", "tokens checked for repetition"},
    {"request.silent", "tokens without text"},
    {"result.prompt_tokens", "tokens of the prompt"},
    {"result.reused_from", "reused from session"},
    {"result.reused_tokens", "reused tokens"},
    {"steps.new_graph", "steps with a new graph"},
};

// The N of "PREFIX.N" or "PREFIX.N.REST" and the rest.
std::optional<std::pair<std::size_t, std::string_view>> numbered(std::string_view name,
                                                                 std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
  if (error != std::errc()) return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (!name.empty()) name.remove_prefix(1);
  return std::pair(n + 1, name);
}

// Prompts and lists of tokens are long: "".
std::optional<std::string> short_value(const std::string& name,
                                       const std::optional<std::string>& value) {
  // The verdict, without its evidence and advice.
  if (name == "machine") return value ? value->substr(0, value->find(':')) : "not disturbed";
  constexpr std::size_t kLongest = 96;
  if (!value || value->empty()) return "none";
  if (value->size() > kLongest || value->contains('\n')) return std::nullopt;
  return value;
}

}  // namespace

const char* cause_title(DifferenceKind kind) { return kWords[std::to_underlying(kind)].title; }

const char* cause_reason(const DifferenceCause& cause) {
  if (cause.kind != DifferenceKind::Settings) return kWords[std::to_underlying(cause.kind)].reason;
  const auto attention =
      std::ranges::find(cause.facts, "context.flash_attention", &ComparedFact::name);
  if (attention == cause.facts.end() || (attention->left != "off" && attention->right != "off"))
    return "";
  return "With flash attention one op computes the attention of a layer (FLASH_ATTN_EXT); without "
         "it several do, which read the whole window of the KV cache, also the part without "
         "tokens, and write the scores of all pairs of tokens: other ops, more bytes, and larger "
         "compute buffers.";
}

std::string fact_label(const std::string& name) {
  const auto known =
      std::ranges::find(kLabels, name, &std::pair<std::string_view, const char*>::first);
  if (known != std::end(kLabels)) return known->second;
  if (const auto message = numbered(name, "request.messages."))
    return std::format("prompt text ({} message {})", message->second, message->first);
  if (const auto change = numbered(name, "altered."))
    return std::format("change {}", change->first);
  if (const auto stop = numbered(name, "request.stop."))
    return std::format("stop text {}", stop->first);
  std::string label = name.substr(name.find('.') + 1);
  std::ranges::replace(label, '_', ' ');
  return label;
}

namespace {

constexpr std::size_t kFacts = 6;

// The changes of each session: only one of them may have been changed.
std::string changes_line(const DifferenceCause& cause) {
  // Each has commas.
  const auto changes_of = [&](std::optional<std::string> ComparedFact::* side) {
    std::string changes;
    std::size_t count = 0;
    for (const ComparedFact& fact : cause.facts) {
      if (!(fact.*side) || ++count > kFacts) continue;
      changes += std::format("{}{}", changes.empty() ? "" : "; ", *(fact.*side));
    }
    return count > kFacts ? std::format("{}; {} more", changes, count - kFacts) : changes;
  };
  std::string text;
  for (const auto& [name, side] :
       {std::pair{"first", &ComparedFact::left}, std::pair{"second", &ComparedFact::right}}) {
    const std::string changes = changes_of(side);
    if (changes.empty()) continue;
    text += std::format("{}{} in the {} session: {}.", text.empty() ? "" : " ",
                        cause_title(cause.kind), name, changes);
  }
  return text;
}

}  // namespace

std::string cause_line(const DifferenceCause& cause) {
  if (cause.kind == DifferenceKind::Altered) return changes_line(cause);
  std::vector<std::string> parts;
  for (const ComparedFact& fact : cause.facts) {
    if (parts.size() == kFacts) {
      parts.push_back(std::format("{} more", cause.facts.size() - kFacts));
      break;
    }
    const auto left = short_value(fact.name, fact.left), right = short_value(fact.name, fact.right);
    const std::string label = fact_label(fact.name);
    parts.push_back(!left || !right   ? label
                    : *left == *right ? std::format("{} {} in both", label, *left)
                                      : std::format("{} {} and {}", label, *left, *right));
  }
  const std::string_view reason = cause_reason(cause);
  return std::format("{}: {}.{}{}", cause_title(cause.kind), join(parts), reason.empty() ? "" : " ",
                     reason);
}

}  // namespace tt
