#include "program/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <ranges>
#include <set>

#include "program/llama_server_options.h"
#include "program/validators.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

struct LongName {
  std::string_view llama, ours;
};
constexpr std::array kLongNames = {
    LongName{"-ub", "--ubatch-size"},   LongName{"-tb", "--threads-batch"},
    LongName{"-fa", "--flash-attn"},    LongName{"-ctk", "--cache-type-k"},
    LongName{"-ctv", "--cache-type-v"}, LongName{"-ngl", "--n-gpu-layers"},
    LongName{"-nr", "--no-repack"},     LongName{"-lm", "--load-mode"},
    LongName{"-lzm", "--lazy-mode"},    LongName{"-ot", "--override-tensor"},
    LongName{"-cmoe", "--cpu-moe"},     LongName{"-ncmoe", "--n-cpu-moe"},
};

// The verb that was given, or the part of it ("gguf reorder"); the program itself if there is none.
const CLI::App& chosen(const CLI::App& app) {
  const CLI::App* of = &app;
  while (!of->get_subcommands().empty()) of = of->get_subcommands().front();
  return *of;
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// CLI11 reports an invalid value in errno.
bool is_off(const std::string& value) {
  errno = 0;
  return CLI::detail::to_flag_value(value) == -1 && errno == 0;
}

// Error message for a value that could not be converted, derived from the type name that
// CLI11 or this program set.
std::string conversion_error(const CLI::Option& option, const std::string& value) {
  const std::string type = option.get_type_name();
  const bool whole = type.starts_with("UINT") || type.starts_with("INT") || type == "N";
  if (whole && value.find_first_not_of("0123456789") == std::string::npos)
    return std::format("'{}' is too large", value);
  const char* expected = is_flag(option)           ? "true or false"
                         : !whole                  ? "a number"
                         : type.starts_with("INT") ? "a whole number"
                                                   : "a whole number, 0 or more";
  return std::format("must be {}, not '{}'", expected, value);
}

// Converts the values of an option. `name`: the option or environment variable, for the error
// message.
void convert(CLI::Option& option, const std::string& name) {
  try {
    option.run_callback();
  } catch (const CLI::ValidationError& wrong) {
    std::string why = wrong.what();
    if (const std::string own = option.get_name() + ": "; why.starts_with(own))
      why.erase(0, own.size());
    throw CLI::ValidationError(name, why);
  } catch (const CLI::ConversionError&) {
    throw CLI::ValidationError(name, conversion_error(option, option.results().back()));
  } catch (const CLI::ArgumentMismatch&) {
    const int count = option.get_items_expected_min();
    throw CLI::ValidationError(
        name, count > 1 ? std::format("requires {} values", count) : "may be given only once");
  }
}

// "-m --port 80": an option is no value, unless it is written as one ("--prompt=-n").
void reject_option_as_value(const CLI::App& app, const CLI::Option& option,
                            const std::vector<std::string>& arguments) {
  if (is_flag(option) || option.get_positional()) return;
  const auto names = [&](const std::string& argument) {
    return argument.size() > 1 && argument[0] == '-' ? app.get_option_no_throw(argument) : nullptr;
  };
  for (std::size_t i = 0; i + 1 < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& next = arguments[i + 1];
    if (names(arguments[i]) != &option || names(next) == nullptr) continue;
    throw CLI::ValidationError(
        arguments[i], std::format("requires a value, but the option {} follows. A value that looks "
                                  "like an option: {}={}",
                                  next, option.get_name(), next));
  }
}

// Converts the values of all options set by arguments or environment variables.
void convert_values(CLI::App& app, const std::vector<std::string>& arguments_given) {
  const std::vector<CLI::Option*> options = app.get_options();
  std::set<const CLI::Option*> arguments, variables;
  for (const CLI::Option* option : options)
    if (option->count() > 0) arguments.insert(option);
  const auto given = [&](const CLI::Option* option) { return arguments.contains(option); };
  for (CLI::Option* option : options) {
    const std::string variable = option->get_envname();
    if (given(option) || variable.empty()) continue;
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    // For a flag without a negative form, "off" is the default and excludes nothing.
    const bool off = is_flag(*option) && option->get_fnames().empty() && is_off(value);
    if (off || std::ranges::any_of(option->get_excludes(), given)) {
      option->envname("");  // otherwise CLI11 reads it
      continue;
    }
    for (const CLI::Option* other : option->get_excludes())
      if (variables.contains(other)) throw CLI::ExcludesError(variable, other->get_envname());
    option->add_result(value);
    variables.insert(option);
  }
  // Arguments without a name last: where an option lacks its value and takes the next option for
  // it, that option's value is left without a name. "-fa --port 80" is a wrong -fa, not a wrong
  // "80".
  for (const bool positional : {false, true}) {
    for (CLI::Option* option : options) {
      if (option->get_positional() != positional) continue;
      if (option->count() > 0 && !option->get_callback_run())
        convert(*option, variables.contains(option) ? option->get_envname() : option->get_name());
      if (given(option)) reject_option_as_value(app, *option, arguments_given);
    }
  }
  for (CLI::App* verb : app.get_subcommands()) convert_values(*verb, arguments_given);
}

// LLAMA_ARG_MODEL and so on, which programs of llama.cpp read.
void warn_of_ignored_variables(const CLI::App& app) {
  const CLI::App& of = chosen(app);
  if (of.get_option_no_throw("--ctx-size") == nullptr) return;  // it runs no model
  std::vector<std::string> ignored;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (variable.starts_with("LLAMA_ARG_"))
      ignored.emplace_back(variable.substr(0, variable.find('=')));
  }
  if (ignored.empty()) return;
  std::ranges::sort(ignored);
  std::fputs(
      std::format("{}: {} {} no effect: only programs of llama.cpp read {}. Here --ctx-size "
                  "is {}, and so on.\n",
                  app.get_name(), join(ignored), ignored.size() == 1 ? "has" : "have",
                  ignored.size() == 1 ? "it" : "them", of.get_option("--ctx-size")->get_envname())
          .c_str(),
      stderr);
}

// CLI11 ignores environment variables with invalid values and has its own error messages. To
// report them like options, values are converted here, after all arguments are read and --help
// is handled. The hook is the callback of a hidden option that is always called.
void add_conversion_hook(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto hook = [&app, arguments](const CLI::results_t& results) {
    if (!results.front().empty()) throw CLI::ExtrasError({"--take-values"});
    warn_of_ignored_variables(app);
    convert_values(app, arguments);
    return true;
  };
  app.add_option("--take-values", hook)
      ->group("")
      ->force_callback()
      ->callback_priority(CLI::CallbackPriority::First);
}

// The words that bash completion offers (cli/completion/tt), one per line. `kind`: verbs, or
// the parts of the verb in the arguments; options, those of the verb or part in the arguments;
// values, those of the option that the arguments end with.
void print_completions(CLI::App& app, std::string_view kind,
                       const std::vector<std::string>& arguments) {
  CLI::App* of = &app;
  for (const std::string& argument : arguments)
    if (CLI::App* verb = of->get_subcommand_no_throw(argument)) of = verb;
  if (kind == "verbs") {
    for (const CLI::App* verb : of->get_subcommands(nullptr)) std::puts(verb->get_name().c_str());
  } else if (kind == "options") {
    for (const CLI::Option* option : of->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_snames()) std::printf("-%s\n", name.c_str());
      for (const std::string& name : option->get_lnames()) std::printf("--%s\n", name.c_str());
    }
  } else if (kind == "values" && !arguments.empty()) {
    if (CLI::Option* option = of->get_option_no_throw(arguments.back()))
      for (const std::string& word : choices_of(*option)) std::puts(word.c_str());
  }
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// What the arguments without the name of an option are. Of a verb that has none: the one for a
// prompt, which llama.cpp does not take without a name either.
std::string expected_arguments(const CLI::App& app, const std::string& program) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) names.push_back(option->get_name());
  if (!names.empty()) return std::format(": {} takes only {}", program, join(names));
  return app.get_option_no_throw("--prompt") == nullptr ? "" : ". A prompt is given with -p";
}

// What to do instead of using an option that `of` does not have.
std::string instead_of(const CLI::App& app, const CLI::App& of, const std::string& name) {
  // "--ot"
  if (const auto* known = std::ranges::find(kLongNames, name.substr(1), &LongName::llama);
      known != kLongNames.end() && of.get_option_no_throw(std::string(known->ours)) != nullptr)
    return std::format(". Did you mean {}?", known->llama);
  std::vector<std::string> others;
  for (const CLI::App* verb : verbs_of(app))
    if (const CLI::Option* option = verb->get_option_no_throw(name);
        option != nullptr && !option->get_group().empty())
      others.push_back("tt " + verb->get_name());
  constexpr std::size_t kFew = 4;  // of more verbs, none is the one that was meant
  if (!others.empty() && others.size() <= kFew)
    return std::format(". It is an option of {}", join(others));
  if (name == "--conversation" || name == "-cnv")  // of llama-cli
    return ". tt record --chat answers one message; tt-server has a chat";
  // Only of programs that load a model; in others a letter means something else.
  const bool loads = of.get_option_no_throw("--ctx-size") != nullptr;
  if (const auto* theirs = loads ? llama_server_option(name) : nullptr) {
    if (!theirs->instead.empty()) return std::format(". {}", theirs->instead);
    const bool of_request =
        theirs->group == LlamaServerOption::Group::Sampling || theirs->has_name("--predict");
    if (of_request && of.get_option_no_throw("--temp") == nullptr)
      return ". A request has its own length and sampling: POST /api/v1/generate, or tt record";
  }
  std::vector<std::string> names = option_names(of);
  // "-j" means "--json": one letter is as far from every other one.
  if (name.size() == 2) {
    std::erase_if(names, [&](const std::string& one) { return !one.starts_with("-" + name); });
    return names.empty() || names.size() > kFew ? ""
                                                : std::format(". Did you mean {}?", join(names));
  }
  return did_you_mean(name, names);
}

// For the first argument that the parser could not use.
std::string unknown_argument(const CLI::App& app, const std::string& program,
                             const std::string& argument) {
  const CLI::App& of = chosen(app);
  if (!is_option(argument))
    return std::format("unexpected argument '{}'{}", argument, expected_arguments(of, program));
  const std::string name = argument.substr(0, argument.find('='));
  return std::format("unknown option {}{}", name, instead_of(app, of, name));
}

std::string unknown_verb(const CLI::App& app, const std::string& verb) {
  constexpr std::array<std::string_view, 3> kServer = {"serve", "server", "start"};
  if (std::ranges::contains(kServer, verb))
    return std::format("unknown verb '{}'. The server is a program of its own: tt-server", verb);
  const auto name = [](const CLI::App* known) { return known->get_name(); };
  return std::format("unknown verb '{}'{}", verb,
                     did_you_mean(verb, verbs_of(app) | std::views::transform(name)));
}

// "right is required" -> "right is required: Session file to compare with (.ttrace)".
std::string with_description(const CLI::App& app, const std::string& text) {
  const CLI::Option* option = chosen(app).get_option_no_throw(text.substr(0, text.find(' ')));
  if (option == nullptr || option->get_description().empty()) return text;
  return std::format("{}: {}", text, option->get_description());
}

// The first option that has taken the mark before a command, "--", for its value.
const CLI::Option* option_without_value(const CLI::App& app) {
  const std::vector<const CLI::Option*> options = chosen(app).get_options();
  const auto found = std::ranges::find_if(options, [](const CLI::Option* option) {
    return !option->get_positional() && std::ranges::contains(option->results(), "--");
  });
  return found == options.end() ? nullptr : *found;
}

std::string error_message(const CLI::App* app, const CLI::Error& error) {
  std::string program = app->get_name(), text = error.what();
  const bool has_verbs = app->get_require_subcommand_min() > 0;
  const std::vector<std::string> before = app->remaining(), rest = app->remaining(true);
  // Of "tt bench moe.gguf", the parser takes moe for a verb with an option gguf.
  const bool verb_missing = has_verbs && (app->get_subcommands().empty() ||
                                          (!before.empty() && !is_option(before.front())));
  if (!verb_missing) program = name_with_verbs(*app);
  // The parser leaves the mark before the arguments without a name, too.
  const auto option = std::ranges::find_if(
      rest, [](const std::string& argument) { return is_option(argument) && argument != "--"; });
  if (verb_missing && !before.empty() && !is_option(before.front())) {
    text = unknown_verb(*app, before.front());
  } else if (verb_missing && option != rest.end()) {
    text = std::format(
        "unknown option {} before the verb. A verb comes first, such as: {} show "
        "session.ttrace",
        option->substr(0, option->find('=')), program);
  } else if (const CLI::Option* without = option_without_value(*app)) {
    // Before other errors: the options of the command are taken for those of the verb.
    text = std::format("{} requires a value before --: {}", without->get_name(),
                       without->get_description());
  } else if (option != rest.end()) {
    // Before other errors: "--prot 80" makes 80 an argument without a name.
    text = unknown_argument(*app, program, *option);
  } else if (verb_missing && error.get_name() == "RequiredError") {
    text = "a verb is required";
  } else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) &&
             !rest.empty()) {
    text = unknown_argument(*app, program, rest.front());
  } else if (error.get_name() == "ArgumentMismatch") {
    text = text.substr(0, text.find(':')) + " requires a value";
  } else if (error.get_name() == "RequiredError") {
    text = with_description(*app, text);
  }
  // Of the program "tt bench-model --against", which parses the value of an option.
  const std::string with_help = program.substr(0, program.find(" --"));
  return std::format("{}: {}\nRun `{} --help` for {}.\n", program, text, with_help,
                     verb_missing ? "a list of verbs" : "usage");
}

}  // namespace

void name_environment(CLI::App& app, std::string_view prefix) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    std::string name = option->get_lnames().front();
    if (name == "help" || name == "version") continue;
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    option->envname(std::string(prefix) + name);
  }
}

std::string name_with_verbs(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* of = &app; !of->get_subcommands().empty();) {
    of = of->get_subcommands().front();
    name += " " + of->get_name();
  }
  return name;
}

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> out(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : out) {
    if (argument == "--") break;
    const auto* known = std::ranges::find(kLongNames, std::string_view(argument), &LongName::llama);
    if (known != kLongNames.end()) {
      argument = known->ours;
    } else if (argument.size() > 2 && argument[1] != '-') {
      // Otherwise "-ctxcp 3" would set -c to "txcp".
      if (const auto* theirs = llama_server_option(argument)) argument = theirs->long_name();
    }
  }
  return out;
}

std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments) {
  if (const char* kind = std::getenv("TT_COMPLETE")) {
    print_completions(app, kind, arguments);
    return 0;
  }
  app.failure_message(&error_message);
  add_conversion_hook(app, arguments);
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& stop) {
    return app.exit(stop) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace tt
