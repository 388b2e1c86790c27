// Loads the weights of a model with llama.cpp.
#pragma once

#include <expected>

#include "tracer/engine/engine.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {

enum class LoadPart : bool { All, Metadata };

// `index`: of the file in `options`, without faults. Blocks until the weights are loaded; cancelled
// when `progress` returns false. Error: with the first message of llama.cpp, and what to do.
std::expected<LlamaModel, EngineError> load_model(const ModelOptions& options,
                                                  const GgufIndex& index,
                                                  const LoadProgress& progress,
                                                  LoadPart part = LoadPart::All);

}  // namespace tt
