// How much of a prompt an earlier request has evaluated already, for sessions of the server and
// attached ones. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tracer/format/model/session.h"
#include "tracer/request/generation.h"

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

// Both, where the prompt differs first: `end` is None or OtherToken, `session` empty. `text_of`:
// UTF-8 of a few tokens.
using TextOfTokens = std::function<std::string(std::span<const std::int32_t>)>;
CachedTokens compare_prompt(std::span<const std::int32_t> cached,
                            std::span<const std::int32_t> prompt, const TextOfTokens& text_of);

// The facts "result.": of a prompt whose first `reused` tokens were not evaluated.
void add_reuse_facts(SessionInfo& info, std::uint32_t reused, const CachedTokens& cached);

}  // namespace tt
