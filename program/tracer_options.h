// Model and context options of tt-server and `tt record`, with llama.cpp's names.
#pragma once

#include <CLI/CLI.hpp>

#include "tracer/request/model_options.h"

namespace tt {

// The structs must outlive the parsing; their initial values are the defaults.
void add_model_options(CLI::App& app, ModelOptions& model);
void add_context_options(CLI::App& app, ContextOptions& context);

}  // namespace tt
