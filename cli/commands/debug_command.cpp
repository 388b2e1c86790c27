// tt debug MODEL: runs prompts op by op, with commands as in gdb (docs/debug.md).
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <format>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/debug_console.h"
#include "cli/commands/run_events.h"
#include "cli/commands/scratch_folder.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/status_line.h"
#include "program/installation.h"
#include "program/tracer_options.h"
#include "program/validators.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/generation_queue.h"
#include "tracer/format/file/input_file.h"
#include "tracer/request/request_bounds.h"
#include "tracer/sandbox/sandbox.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

struct CommandOptions {
  std::optional<fs::path> model_file;
  ModelOptions model;
  ContextOptions context;
  GenerationRequest request;
  fs::path commands, output, chat_template_file;
  bool chat = false, force = false;
};

int report_error(std::string_view message, int exit_code = 1) {
  print_message("tt debug: {}", message);
  return exit_code;
}

constexpr std::size_t kMaxScriptBytes = 1U << 20;

// Reads commands from a person, or from a script, which ends at its first error.
int read_commands(std::istream& input, bool is_script, DebugConsole& console) {
  for (std::size_t number = 1; !was_interrupted(); ++number) {
    if (!is_script) {
      put("(tt) ");
      flush_output();
    }
    std::string line;
    if (!std::getline(input, line)) break;
    const auto done = console.execute(line);
    if (done && !*done) break;
    flush_output();
    if (done) continue;
    if (is_script) return report_error(std::format("line {}: {}", number, done.error()));
    print_line("{}", done.error());
  }
  return was_interrupted() ? 130 : 0;
}

int run(CommandOptions& options) {
  const Installation installation = current_installation();
  if (options.model_file) options.model.path = *options.model_file;
  if (options.model.path.empty()) options.model.path = installation.bundled_model;
  fs::path output;
  if (!options.output.empty()) {
    std::vector<fs::path> inputs = model_files(options.model.path);
    inputs.insert(inputs.end(),
                  {options.commands, options.model.access_pattern, options.chat_template_file});
    auto path = output_path(options.output, Target::File, inputs, options.force);
    if (!path) return report_error(path.error());
    output = *std::move(path);
  }
  std::istringstream script;
  if (!options.commands.empty()) {
    auto text = read_input(options.commands, kMaxScriptBytes, InputKind::RegularOrPipe);
    if (!text) return report_error("--commands: " + text.error().message);
    if (text->empty())
      return report_error(std::format("--commands: {} is empty", options.commands.string()));
    script.str(*std::move(text));
  }
  const InterruptGuard guard;
  load_backends([](LibraryLine, std::string_view) {});
  RunEvents events;
  StatusLine line(true);
  const ScratchFolder scratch("tt-debug");
  if (scratch.path().empty()) return report_error(scratch.error());
  const fs::path folder = output.empty() ? scratch.path() : output.parent_path();
  Sandbox sandbox(installation.worker);
  GenerationQueue queue({.model = options.model,
                         .context = options.context,
                         .data_dir = folder,
                         .self_check_model = installation.bundled_model,
                         .sandbox = &sandbox,
                         .check_model = true},
                        events);
  const auto loaded = wait_for_model(queue, line);
  line.clear();
  if (!loaded) return report_error(loaded.error(), was_interrupted() ? 130 : 1);
  if (const std::string warning = queue.load_state().warning; !warning.empty())
    print_message("tt debug: {}", warning);
  DebugConsole console(queue, events, options.request, options.chat, folder);
  const bool is_script = !options.commands.empty() || ::isatty(STDIN_FILENO) != 1;
  const int code = read_commands(options.commands.empty() ? std::cin : script, is_script, console);
  console.close();
  queue.stop();
  if (output.empty() || console.last_session().empty()) return code;
  if (const auto failed = replace_session(console.last_session(), output))
    return report_error(std::format("{}: {}", options.output.string(), failed.message()));
  return code;
}

}  // namespace

RunVerb add_debug_command(CLI::App& command) {
  auto options = std::make_shared<CommandOptions>();
  options->request.max_tokens = 16;
  options->request.sampling.temperature = 0;  // so that a run can be repeated
  command.option_defaults()->group("Session");
  command.add_option("model_file", options->model_file, "Model (GGUF); instead of --model")
      ->type_name("FILE");
  command
      .add_option("-x,--commands", options->commands,
                  "File with commands, one per line; without it, they are read from standard input")
      ->check(file_name())
      ->type_name("FILE");
  command.add_option("-o,--output", options->output, "Write the session of the last run (.ttrace)")
      ->type_name("FILE");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.add_flag("--chat", options->chat, "Apply the model's chat template to prompts");
  command
      .add_option("-n,--n-predict", options->request.max_tokens,
                  "Maximum number of tokens to generate")
      ->check(whole_number(bounds_of("max_tokens")))
      ->capture_default_str();
  command.add_flag("--ignore-eos", options->request.ignore_eos,
                   "Never choose a token that ends the answer");
  command.option_defaults()->group("Model");
  add_model_options(command, options->model);
  command.get_option("--chat-template-file")->each([options](const std::string& path) {
    options->chat_template_file = path;
  });
  command.option_defaults()->group("Context");
  add_context_options(command, options->context);
  command.footer(
      "Example: tt debug model.gguf\n"
      "         printf 'break l_out layer 3\\nrun Once upon a time\\nprint\\n' | tt debug "
      "model.gguf\n"
      "The command help lists the commands.");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
