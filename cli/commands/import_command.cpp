// tt import LOG_OR_FOLDER -o SESSION: creates a session from an export.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <print>
#include <string>

#include "api/exchange/import/import.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/progress.h"

namespace tt::cli {
namespace {

struct ImportOptions {
  std::filesystem::path from, output;
  bool quiet = false;
};

int run(const ImportOptions& options) {
  Progress progress("import", options.quiet ? ProgressVisibility::No : ProgressVisibility::Yes);
  if (const auto error =
          output_path_error(options.output, Target::File, {options.from}, /*force=*/false))
    return progress.failed(*error);
  const ContinueCheck keep_going = progress.start_steps("reading");
  std::error_code none;
  const auto imported = std::filesystem::is_directory(options.from, none)
                            ? exchange::import_run_folder(options.from, options.output, keep_going)
                            : exchange::import_log(options.from, options.output, keep_going);
  if (!imported) return progress.failed(imported.error());
  progress.end();
  if (!options.quiet) {
    std::println(stderr, "{}: {} steps, {} accesses, {} bytes touched", options.output.string(),
                 imported->steps, imported->accesses, imported->bytes);
  }
  return 0;
}

}  // namespace

RunVerb add_import_command(CLI::App& command) {
  auto options = std::make_shared<ImportOptions>();
  command
      .add_option("from", options->from, "Log or run folder, from `tt export` or another tracer")
      ->required()
      ->type_name("FILE|FOLDER");
  command.add_option("-o,--output", options->output, "Session file to write (.ttrace)")
      ->required()
      ->type_name("FILE");
  command.add_flag("-q,--quiet", options->quiet, "Do not show progress or a summary");
  command.footer(
      "Example: tt import s.ndjson -o s.ttrace\n"
      "         tt import run -o s.ttrace\n"
      "Restores accesses, bytes, times, tokens and experts, but not the edges of graphs.");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
