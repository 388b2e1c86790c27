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

}  // namespace tt
