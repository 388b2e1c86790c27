// How much of a prompt an earlier request has evaluated already. Pure function, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tt {

struct PrefixMatch {
  std::size_t common = 0;  // tokens at the begin of both
  // Tokens of the prompt after them, in runs of at least kRepeatedRun that `cached` has after them,
  // too, wherever: text that is evaluated again because something before it has changed.
  std::size_t repeated = 0;
};
inline constexpr std::size_t kRepeatedRun = 8;

// Time: linear in both lengths.
PrefixMatch match_prefix(std::span<const std::int32_t> cached,
                         std::span<const std::int32_t> prompt);

}  // namespace tt
