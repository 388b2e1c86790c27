// The options about model and context, the same for tt-server and `tt record`,
// named as llama.cpp names them.
#pragma once

#include <CLI/CLI.hpp>

#include "tracer/request/model_options.h"

namespace tt {

// Both option structs outlive the parsing; what they hold before is the default.
void add_model_options(CLI::App& app, ModelOptions& model);
void add_context_options(CLI::App& app, ContextOptions& context);

}  // namespace tt
