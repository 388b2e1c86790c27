// Builds llama.cpp's sampler chain, in the same order as llama.cpp's own programs.
#pragma once

#include <cstdint>
#include <span>

#include "tracer/engine/grammar.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/request/generation.h"

namespace tt {

// `sampling.seed` must not be the random placeholder. `context`: tokens, the largest window of the
// repetition penalty. `grammar`: of `sampling.grammar`, null: none; must outlive the result.
LlamaSampler make_sampler(const Sampling& sampling, const llama_vocab* vocab, std::uint32_t context,
                          GrammarRun* grammar);

// Passes the prompt to the samplers of the chain, except the grammar, which describes only the
// answer.
void accept_prompt(llama_sampler* chain, std::span<const std::int32_t> tokens);

}  // namespace tt
