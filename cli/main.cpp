// Entry point of tt. Each verb is one CLI11 subcommand in cli/commands.
#include <CLI/CLI.hpp>
#include <string>

#include "api/json/version.h"
#include "cli/commands/compare_command.h"
#include "cli/commands/export_command.h"
#include "cli/commands/gguf_command.h"
#include "cli/commands/graph_command.h"
#include "cli/commands/heads_command.h"
#include "cli/commands/hot_command.h"
#include "cli/commands/import_command.h"
#include "cli/commands/model_command.h"
#include "cli/commands/moe_command.h"
#include "cli/commands/parse_command.h"
#include "cli/commands/pattern_command.h"
#include "cli/commands/record_command.h"
#include "cli/commands/report_command.h"
#include "cli/commands/reuse_command.h"
#include "cli/commands/show_command.h"
#include "cli/commands/sql_command.h"
#include "cli/terminal/standard_output.h"
#include "program/command_line.h"

int main(int argc, char** argv) {
  CLI::App app("Records and analyzes the memory accesses of llama.cpp models.", "tt");
  app.set_version_flag("--version", std::string("tt ") + tt::kVersion);
  app.require_subcommand(1);
  app.footer(
      "Example: tt record -p 'Once upon a time' -n 32 -o s.ttrace\n"
      "         tt hot s.ttrace\n"
      "Run tt VERB --help for options and examples.");
  int exit_code = 0;
  tt::cli::add_compare_command(app, exit_code);
  tt::cli::add_export_command(app, exit_code);
  tt::cli::add_gguf_command(app, exit_code);
  tt::cli::add_graph_command(app, exit_code);
  tt::cli::add_heads_command(app, exit_code);
  tt::cli::add_hot_command(app, exit_code);
  tt::cli::add_import_command(app, exit_code);
  tt::cli::add_model_command(app, exit_code);
  tt::cli::add_moe_command(app, exit_code);
  tt::cli::add_parse_command(app, exit_code);
  tt::cli::add_pattern_command(app, exit_code);
  tt::cli::add_record_command(app, exit_code);
  tt::cli::add_report_command(app, exit_code);
  tt::cli::add_reuse_command(app, exit_code);
  tt::cli::add_show_command(app, exit_code);
  tt::cli::add_sql_command(app, exit_code);
  exit_code = tt::parse(app, tt::arguments_of(argc, argv)).value_or(exit_code);
  std::string command = "tt";
  for (const CLI::App* verb : app.get_subcommands()) command += " " + verb->get_name();
  return tt::cli::finish_output(command, exit_code);
}
