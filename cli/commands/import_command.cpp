// tt import LOG_OR_FOLDER -o SESSION: creates a session from an export.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <format>
#include <memory>
#include <print>
#include <string>

#include "analysis/common/format_units.h"
#include "api/exchange/import/import.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/progress.h"

namespace tt::cli {
namespace {

struct ImportOptions {
  std::filesystem::path from, output;
  bool force = false, quiet = false;
};

int run(const ImportOptions& options) {
  Progress progress("import", options.quiet ? ProgressVisibility::No : ProgressVisibility::Yes);
  if (const auto error =
          output_path_error(options.output, Target::File, {options.from}, options.force))
    return progress.failed(*error);
  const ContinueCheck keep_going = progress.start_steps("reading");
  // An existing file is replaced only by a complete session.
  std::filesystem::path session = options.output;
  std::error_code none, failed;
  if (std::filesystem::exists(session, none)) session += std::format(".{}.new", getpid());
  const auto imported = std::filesystem::is_directory(options.from, none)
                            ? exchange::import_run_folder(options.from, session, keep_going)
                            : exchange::import_log(options.from, session, keep_going);
  if (!imported) return progress.failed(imported.error());
  if (session != options.output) std::filesystem::rename(session, options.output, failed);
  if (failed) return progress.failed(options.output.string() + ": " + failed.message());
  progress.end();
  if (!options.quiet) {
    std::println(stderr, "{}: {}, {}, {} touched", options.output.string(),
                 counted(imported->steps, "step"), counted(imported->accesses, "access"),
                 counted(imported->bytes, "byte"));
    if (const std::string ignored = exchange::ignored_text(*imported); !ignored.empty())
      std::println(stderr, "not kept: {}", escape_control_chars(ignored));
  }
  return 0;
}

}  // namespace

RunVerb add_import_command(CLI::App& command) {
  auto options = std::make_shared<ImportOptions>();
  command
      .add_option("from", options->from,
                  "Log or run folder, from `tt export` or another tracer, or a routing log")
      ->required()
      ->type_name("FILE|FOLDER");
  command.add_option("-o,--output", options->output, "Session file to write (.ttrace)")
      ->required()
      ->type_name("FILE");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.add_flag("-q,--quiet", options->quiet, "Do not show progress or a summary");
  command.footer(
      "Example: tt import s.ndjson -o s.ttrace\n"
      "         tt import run -o s.ttrace\n"
      "Restores accesses, bytes, times, tokens and experts, but not the edges of graphs.");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
