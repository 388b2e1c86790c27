// Model and context options of tt-server and `tt record`, with llama.cpp's names.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>

#include "tracer/request/model_options.h"

namespace tt {

// The structs must outlive the parsing; their initial values are the defaults.
void add_model_options(CLI::App& app, ModelOptions& model);
void add_context_options(CLI::App& app, ContextOptions& context);

// Of what was measured of the machine: $XDG_CACHE_HOME/tensor-trace, or its fallback from the XDG
// specification. Empty: there is no home folder.
std::filesystem::path default_machine_folder();

}  // namespace tt
