#include "tracer/engine/prefix_match.h"

#include <algorithm>
#include <format>
#include <string_view>
#include <unordered_set>

namespace tt {
namespace {

// The bytes of the run that begins at `at`.
std::string_view run_at(std::span<const std::int32_t> tokens, std::size_t at) {
  const auto bytes = std::as_bytes(tokens.subspan(at, kRepeatedRun));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A role: "user", "assistant". Text between two control tokens that is none is a message.
bool is_role(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

}  // namespace

std::size_t common_tokens(std::span<const std::int32_t> cached,
                          std::span<const std::int32_t> prompt) {
  return static_cast<std::size_t>(std::ranges::mismatch(cached, prompt).in1 - cached.begin());
}

std::size_t repeated_tokens(std::span<const std::int32_t> cached,
                            std::span<const std::int32_t> prompt) {
  if (cached.size() < kRepeatedRun) return 0;
  std::unordered_set<std::string_view> runs;
  for (std::size_t at = 0; at + kRepeatedRun <= cached.size(); ++at)
    runs.insert(run_at(cached, at));
  std::size_t repeated = 0, counted = 0;  // counted: the end of the last token that was
  for (std::size_t at = 0; at + kRepeatedRun <= prompt.size(); ++at) {
    if (!runs.contains(run_at(prompt, at))) continue;
    repeated += at + kRepeatedRun - std::max(at, counted);
    counted = at + kRepeatedRun;
  }
  return repeated;
}

PromptPart part_of(std::span<const std::int32_t> prompt, std::size_t at, const TokenWords& words) {
  constexpr std::size_t kRoleTokens = 4;
  // The last control token up to `at`.
  const auto control_before = [&](std::size_t end) -> std::size_t {
    while (end > 1 && !words.is_control(prompt[end - 1])) --end;
    return end > 1 ? end - 1 : 0;  // 0: the begin of the prompt is no message
  };
  std::size_t begin = control_before(std::min(at + 1, prompt.size()));
  if (begin == 0) return {};
  const auto text = [&](std::size_t from, std::size_t to) {
    return words.text_of(prompt.subspan(from, std::min(to, prompt.size()) - from));
  };
  PromptPart part;
  part.begin = text(begin, begin + 1);
  const std::string next = text(begin + 1, begin + 1 + kRoleTokens);
  const std::string role = next.contains('\n') ? next.substr(0, next.find('\n')) : "";
  // <|start_header_id|>user<|end_header_id|> or <|im_start|>user, and the end of the line.
  const std::size_t header = control_before(begin);
  if (header > 0 && begin - header <= kRoleTokens && next.starts_with('\n') &&
      is_role(text(header + 1, begin))) {
    part.begin = text(header, begin + 1);
    begin = header;
  } else if (is_role(role)) {
    part.begin += role;
  }
  part.number =
      static_cast<std::uint32_t>(std::ranges::count(prompt.first(begin + 1), prompt[begin]));
  return part;
}

CachedTokens compare_prompt(std::span<const std::int32_t> cached,
                            std::span<const std::int32_t> prompt, const TokenWords& words) {
  const std::size_t common = common_tokens(cached, prompt);
  CachedTokens out;
  out.tokens = static_cast<std::uint32_t>(cached.size());
  out.common = static_cast<std::uint32_t>(common);
  out.repeated =
      static_cast<std::uint32_t>(repeated_tokens(cached.subspan(common), prompt.subspan(common)));
  if (common == std::min(cached.size(), prompt.size())) return out;
  constexpr std::size_t kTextTokens = 8;
  const auto begin_of = [&](std::span<const std::int32_t> list) {
    return words.text_of(list.first(std::min(kTextTokens, list.size())));
  };
  out.end = ReuseEnd::OtherToken;
  const PromptPart part = part_of(prompt, common, words);
  out.part = part.begin;
  out.part_number = part.number;
  out.before = words.text_of(prompt.first(common).last(std::min(kTextTokens, common)));
  out.prompt = begin_of(prompt.subspan(common));
  out.cached = begin_of(cached.subspan(common));
  return out;
}

void add_reuse_facts(SessionInfo& info, std::uint32_t reused, const CachedTokens& cached) {
  const auto add = [&](const char* name, auto value) {
    info.facts.emplace_back(name, std::format("{}", value));
  };
  add("result.reused_tokens", reused);
  if (reused > 0 && !cached.session.empty()) add("result.reused_from", cached.session);
  if (cached.end != ReuseEnd::None) {
    add("result.reuse_end", to_text(cached.end));
    add("result.cached_tokens", cached.tokens);
    add("result.common_tokens", cached.common);
    add("result.repeated_tokens", cached.repeated);
    if (!cached.session.empty()) add("result.cached_from", cached.session);
  }
  if (!cached.prompt.empty()) {
    add("result.text_before", cached.before);
    add("result.text_prompt", cached.prompt);
    add("result.text_cached", cached.cached);
    if (cached.part_number > 0) {
      add("result.differs_in", cached.part);
      add("result.differs_in_number", cached.part_number);
    }
  }
}

}  // namespace tt
