// llama.cpp's sampler chain in the order that its own programs use.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "tracer/gguf/llama_handles.h"
#include "tracer/request/generation.h"

namespace tt {

// `sampling.seed` is already drawn. The error is a grammar that does not parse
// or is too large (request_bounds.h), or one for a model without vocabulary.
std::expected<LlamaSampler, std::string> make_sampler(const Sampling& sampling,
                                                      const llama_vocab* vocab);

// Tells the chain what stands before the answer. A grammar describes the answer
// only, and would end the process over a prompt that does not follow it.
void accept_prompt(llama_sampler* chain, std::span<const std::int32_t> tokens);

}  // namespace tt
