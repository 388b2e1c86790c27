// Tells models from other GGUF files: adapters, image projectors, control vectors, vocabularies,
// image models, and architectures that this llama.cpp does not know.
#pragma once

#include <string>

#include "tracer/gguf/gguf_index.h"

namespace tt {

// Why the file is not a model that this llama.cpp can run, and what to do, with the path; empty: it
// may be one. Reads no more than `index`, and asks the library (knows_architecture()). Any thread.
std::string not_a_model(const GgufIndex& index);

// Whether llama-imatrix wrote it: how large the inputs of weights are, no model.
bool is_importance_matrix(const GgufIndex& index);

}  // namespace tt
