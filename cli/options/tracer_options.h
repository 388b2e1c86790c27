// The options about model and context, the same for tt-server and `tt record`,
// named as llama.cpp names them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tracer/model_options.h"

namespace tt {

// Both option structs outlive the parsing; what they hold before is the default.
void add_model_options(CLI::App& app, ModelOptions& model);
void add_context_options(CLI::App& app, ContextOptions& context);

// Every option of `app` that has a long name can be given by the environment,
// too: --ctx-size as TT_CTX_SIZE.
void name_environment(CLI::App& app);

// The arguments behind the program's name, with llama.cpp's names of several
// letters behind one dash (-ngl, -ub...), which CLI11 does not have, as long ones.
std::vector<std::string> arguments_of(int argc, char** argv);

// Parses and runs callbacks. Exit code when there is nothing more to do: 0 after
// --help and --version, 2 after a mistake; both have been printed.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);

}  // namespace tt
