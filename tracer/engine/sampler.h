// Builds llama.cpp's sampler chain, in the same order as llama.cpp's own programs.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "tracer/gguf/llama_handles.h"
#include "tracer/request/generation.h"

namespace tt {

// `sampling.seed` must not be the random placeholder. Errors: the grammar does not parse or is
// too large (request_bounds.h), or the model has no vocabulary.
std::expected<LlamaSampler, std::string> make_sampler(const Sampling& sampling,
                                                      const llama_vocab* vocab);

// Passes the prompt to the samplers of the chain, except the grammar: it describes only the
// answer and would abort the process on a prompt that does not match it.
void accept_prompt(llama_sampler* chain, std::span<const std::int32_t> tokens);

}  // namespace tt
