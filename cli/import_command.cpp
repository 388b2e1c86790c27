#include "cli/import_command.h"

#include <cstdio>
#include <filesystem>
#include <format>
#include <memory>
#include <print>
#include <string>

#include "api/exchange/import.h"
#include "cli/interrupt_guard.h"
#include "cli/options/tracer_options.h"
#include "cli/status_line.h"

namespace tt::cli {
namespace {

struct ImportOptions {
  std::filesystem::path from, output;
  bool quiet = false;
};

int fail(const std::string& message) {
  std::println(stderr, "tt import: {}", message);
  return 1;
}

int run(const ImportOptions& options) {
  const InterruptGuard guard;
  StatusLine line(!options.quiet);
  std::uint64_t step = 0;
  const KeepGoing keep_going = [&] {
    line.show(std::format("step {}", ++step));
    return !was_interrupted();
  };
  std::error_code none;
  const auto imported = std::filesystem::is_directory(options.from, none)
                            ? exchange::import_run_folder(options.from, options.output, keep_going)
                            : exchange::import_log(options.from, options.output, keep_going);
  line.clear();
  if (was_interrupted()) return 130;
  if (!imported) return fail(imported.error().message);
  if (!options.quiet) {
    std::println(stderr, "{}: {} steps, {} accesses, {} bytes touched", options.output.string(),
                 imported->steps, imported->accesses, imported->bytes);
  }
  return 0;
}

}  // namespace

CLI::App* add_import_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "A session from a log (NDJSON) or a run folder");
  command->add_option("from", options->from, "What `tt export` wrote, or another tracer")
      ->required()
      ->type_name("FILE|FOLDER");
  command->add_option("-o,--output", options->output, "The session to write, .ttrace")
      ->required()
      ->type_name("FILE");
  command->add_flag("-q,--quiet", options->quiet, "No progress and no summary");
  command->footer(
      "Example: tt import s.ndjson -o s.ttrace\n"
      "         tt import run -o s.ttrace\n"
      "Accesses, bytes, times, tokens and experts come back; the graph's edges do not.");
  name_environment(*command);
  command->callback([options, &exit_code] { exit_code = run(*options); });
  return command;
}

}  // namespace tt::cli
