// The parameters of a context of llama.cpp, from our options.
#pragma once

#include <llama.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "tracer/engine/engine.h"

namespace tt {

// Why a context cannot have these options: limits that llama.cpp does not check, because of which
// it would crash, or load for minutes. nullopt: it can.
std::optional<std::string> option_error(const ContextOptions& options);

// `whole_prompts`: the model evaluates a prompt in one step (encoders). `trained`: tokens of its
// training context, 0 if unknown. `positions`: the maximum that the model has. Error: BadOption.
std::expected<llama_context_params, EngineError> context_params(const ContextOptions& options,
                                                                bool whole_prompts,
                                                                std::uint32_t trained,
                                                                std::uint32_t positions);

// What to say of a context of `context` tokens; empty: it has as many as were asked for. A default
// context that the model cannot have is no surprise.
std::string context_warning(const ContextOptions& options, std::uint32_t context);

}  // namespace tt
