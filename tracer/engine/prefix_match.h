// How much of a prompt an earlier request has evaluated already. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tt {

// The number of tokens at the begin of both.
std::size_t common_tokens(std::span<const std::int32_t> cached,
                          std::span<const std::int32_t> prompt);

// The number of tokens of the prompt in runs of at least kRepeatedRun that `cached` has, too,
// wherever. Of the tokens after the common ones: text that is evaluated again because something
// before it has changed. Time: linear in both lengths.
inline constexpr std::size_t kRepeatedRun = 8;
std::size_t repeated_tokens(std::span<const std::int32_t> cached,
                            std::span<const std::int32_t> prompt);

}  // namespace tt
