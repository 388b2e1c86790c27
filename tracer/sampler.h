// llama.cpp's sampler chain in the order that its own programs use.
#pragma once

#include <expected>
#include <string>

#include "tracer/generation.h"
#include "tracer/llama_handles.h"

namespace tt {

// `sampling.seed` is already drawn. The error is a grammar that does not parse,
// or one for a model without vocabulary.
std::expected<LlamaSampler, std::string> make_sampler(const Sampling& sampling,
                                                      const llama_vocab* vocab);

}  // namespace tt
