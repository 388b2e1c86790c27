// Whether llama.cpp accepts what a model file says of itself: keys, vocabulary, and the names,
// types and shapes of tensors. Weights are neither read nor allocated.
#pragma once

#include <expected>
#include <filesystem>

#include "tracer/engine/engine.h"

namespace tt {

// The error is that of Engine::load(). The file may be damaged: call it in a sandbox only.
std::expected<void, EngineError> load_metadata(const std::filesystem::path& model);

}  // namespace tt
