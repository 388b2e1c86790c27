#include "cli/app.h"

#include "api/json/version.h"
#include "cli/commands/verbs.h"
#include "program/command_line.h"

namespace tt::cli {

std::unique_ptr<CLI::App> make_app(int& exit_code) {
  auto app = std::make_unique<CLI::App>(
      "Records and analyzes the memory accesses of llama.cpp models.", "tt");
  app->set_version_flag("--version", std::string("tt ") + kVersion);
  app->require_subcommand(1);
  app->footer(
      "Example: tt record -p 'Once upon a time' -n 32 -o s.ttrace\n"
      "         tt hot s.ttrace\n"
      "Run tt help VERB, or tt VERB --help, for options and examples.");
  for (const Verb& verb : kVerbs) {
    CLI::App* command = app->add_subcommand(verb.name, verb.description);
    const RunVerb run = verb.add(*command);
    name_environment(*command, verb.variable_prefix);
    for (CLI::App* part : command->get_subcommands({}))
      name_environment(*part, verb.variable_prefix);
    command->callback([run, &exit_code] { exit_code = run(); });
  }
  return app;
}

std::vector<std::string> replace_help_verb(const CLI::App& app,
                                           std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  // The parser reports an unknown verb.
  if (arguments.empty() || app.get_subcommand_no_throw(arguments.front()) != nullptr)
    arguments.emplace_back("--help");
  return arguments;
}

}  // namespace tt::cli
