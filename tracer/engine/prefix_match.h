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

// What the vocabulary says of tokens.
struct TokenWords {
  std::function<std::string(std::span<const std::int32_t>)> text_of;  // UTF-8
  std::function<bool(std::int32_t)> is_control;  // such as <|im_start|>: never made from plain text
};

// The part of a chat template that contains the token `at` of a prompt: the message, which begins
// with a control token and, in most templates, its role. number 0: no control token is before it,
// but that of the prompt's begin.
struct PromptPart {
  std::uint32_t number = 0;  // of the parts that begin with the same token, from 1
  std::string begin;         // "<|im_start|>user"
};
PromptPart part_of(std::span<const std::int32_t> prompt, std::size_t at, const TokenWords& words);

// Both, where the prompt differs first: `end` is None or OtherToken, `session` empty.
CachedTokens compare_prompt(std::span<const std::int32_t> cached,
                            std::span<const std::int32_t> prompt, const TokenWords& words);

// The facts "result.": of a prompt whose first `reused` tokens were not evaluated.
void add_reuse_facts(SessionInfo& info, std::uint32_t reused, const CachedTokens& cached);

}  // namespace tt
