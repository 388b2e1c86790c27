#include "tests/docs/command_line_reference.h"

#include <format>
#include <ranges>
#include <vector>

#include "cli/app.h"
#include "server/app/server_options.h"
#include "tests/support/app_options.h"
#include "tracer/text/join.h"

namespace tt::test {

namespace {

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

// "`-p`, `--prompt TEXT`"
std::string names_cell(const CLI::Option& option) {
  std::vector<std::string> names;
  if (option.get_positional()) names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  if (!is_flag(option)) names.back() += " " + option.get_type_name();
  return cell(join(names, [](const std::string& name) { return std::format("`{}`", name); }));
}

void add_table(const std::vector<CLI::Option*>& options, std::string& out) {
  out += "| option | default | variable | |\n|---|---|---|---|\n";
  const auto code = [](const std::string& text) {
    return text.empty() ? text : std::format("`{}`", cell(text));
  };
  for (const CLI::Option* option : options) {
    const std::string value = option->get_required() ? "required" : code(option->get_default_str());
    out += std::format("| {} | {} | {} | {} |\n", names_cell(*option), value,
                       code(option->get_envname()), cell(option->get_description()));
  }
}

// A table per group of options.
void add_options(CLI::App& app, std::string& out) {
  const auto positional =
      app.get_options([](const CLI::Option* option) { return option->get_positional(); });
  const auto options = listed_options(app);
  std::vector<std::string> groups;
  for (const CLI::Option* option : options)
    if (!std::ranges::contains(groups, option->get_group())) groups.push_back(option->get_group());
  if (!positional.empty()) {
    add_table(positional, out);
    out += '\n';
  }
  for (const std::string& group : groups) {
    if (groups.size() > 1 && group != "OPTIONS") out += group + ":\n\n";
    auto members = options | std::views::filter([&](const CLI::Option* option) {
                     return option->get_group() == group && !option->get_positional();
                   });
    add_table({members.begin(), members.end()}, out);
    out += '\n';
  }
}

// A section, and one of the next lower level for each part of the verb.
void add_verb(CLI::App& verb, const std::string& heading, std::string& out) {
  const std::string name = heading + " " + verb.get_name(), description = verb.get_description();
  out += std::format("{}\n\n{}{}\n\n", name, description, description.ends_with('.') ? "" : ".");
  add_options(verb, out);
  out += std::format("```\n{}\n```\n\n", verb.get_footer());
  for (CLI::App* part : verb.get_subcommands({})) add_verb(*part, "#" + name, out);
}

}  // namespace

std::string command_line_reference() {
  std::string out;
  int exit_code = 0;
  const auto app = cli::make_app(exit_code);
  for (CLI::App* verb : app->get_subcommands({})) add_verb(*verb, "## tt", out);
  ServerOptions options;
  options.data_dir = "$XDG_DATA_HOME/tensor-trace/sessions";
  const auto server = make_server_app(options);
  out += std::format("## tt-server\n\n{}\n\n", server->get_description());
  add_options(*server, out);
  out.pop_back();
  return out;
}

}  // namespace tt::test
