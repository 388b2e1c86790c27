#include "tracer/engine/prefix_match.h"

#include <algorithm>
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

PrefixMatch match_prefix(std::span<const std::int32_t> cached,
                         std::span<const std::int32_t> prompt) {
  PrefixMatch match;
  match.common =
      static_cast<std::size_t>(std::ranges::mismatch(cached, prompt).in1 - cached.begin());
  const auto old = cached.subspan(match.common), rest = prompt.subspan(match.common);
  if (old.size() < kRepeatedRun || rest.size() < kRepeatedRun) return match;
  std::unordered_set<std::string_view> runs;
  for (std::size_t at = 0; at + kRepeatedRun <= old.size(); ++at) runs.insert(run_at(old, at));
  std::size_t counted = 0;  // end of the last token that was counted
  for (std::size_t at = 0; at + kRepeatedRun <= rest.size(); ++at) {
    if (!runs.contains(run_at(rest, at))) continue;
    match.repeated += at + kRepeatedRun - std::max(at, counted);
    counted = at + kRepeatedRun;
  }
  return match;
}

}  // namespace tt
