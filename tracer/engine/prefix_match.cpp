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

CachedTokens compare_prompt(std::span<const std::int32_t> cached,
                            std::span<const std::int32_t> prompt, const TextOfTokens& text_of) {
  const std::size_t common = common_tokens(cached, prompt);
  CachedTokens out;
  out.tokens = static_cast<std::uint32_t>(cached.size());
  out.common = static_cast<std::uint32_t>(common);
  out.repeated =
      static_cast<std::uint32_t>(repeated_tokens(cached.subspan(common), prompt.subspan(common)));
  if (common == std::min(cached.size(), prompt.size())) return out;
  constexpr std::size_t kTextTokens = 8;
  const auto begin_of = [&](std::span<const std::int32_t> list) {
    return text_of(list.first(std::min(kTextTokens, list.size())));
  };
  out.end = ReuseEnd::OtherToken;
  out.before = text_of(prompt.first(common).last(std::min(kTextTokens, common)));
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
  }
}

}  // namespace tt
