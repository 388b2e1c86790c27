// tt import LOG_OR_FOLDER -o SESSION: creates a session from an export.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <format>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "analysis/common/format_units.h"
#include "api/exchange/import/import.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "tracer/format/file/input_file.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  fs::path from, output;
  bool force = false, quiet = false;
};

// Why `from` is neither a log nor a run folder, if that is clear from its name and first bytes.
std::optional<TraceError> source_error(const fs::path& from) {
  const auto error = [&](const char* text) {
    return TraceError{TraceError::Kind::NotASession, from.string() + " " + text};
  };
  std::error_code none;
  if (!fs::exists(from, none) && !none) return not_found(from);
  if (fs::is_directory(from, none)) {
    return fs::exists(from / exchange::kMetadata, none)
               ? std::nullopt
               : std::optional(error("is not a run folder: it has no trace_metadata.json. tt "
                                     "export --format folder "
                                     "writes one."));
  }
  auto file = InputFile::open(from);
  if (!file) return file.error();
  std::string begin(6, '\0');
  file->stream().read(begin.data(), std::ssize(begin));
  if (begin == "SQLite") return error("is a session already. tt show shows what is in it.");
  if (begin.starts_with("GGUF")) return error("is a model. tt gguf lists what is in it.");
  return std::nullopt;
}

int run(const ImportOptions& options) {
  Progress progress("import", options.quiet ? ProgressVisibility::No : ProgressVisibility::Yes);
  const auto output = output_path(options.output, Target::File, {options.from}, options.force);
  if (!output) return progress.failed(output.error());
  if (const auto wrong = source_error(options.from)) return progress.failed(*wrong);
  const ContinueCheck keep_going = progress.start_steps("reading");
  // An existing file is replaced only by a complete session.
  fs::path session = *output;
  std::error_code none, failed;
  if (fs::exists(session, none)) session += std::format(".{}.new", getpid());
  const auto imported = fs::is_directory(options.from, none)
                            ? exchange::import_run_folder(options.from, session, keep_going)
                            : exchange::import_log(options.from, session, keep_going);
  if (!imported) return progress.failed(imported.error());
  if (session != *output) failed = replace_session(session, *output);
  if (failed) return progress.failed(options.output.string() + ": " + failed.message());
  progress.end();
  if (!options.quiet) {
    print_message("{}: {}, {}, {} touched", options.output.string(),
                  counted(imported->steps, "step"), counted(imported->accesses, "access"),
                  counted(imported->bytes, "byte"));
    if (const std::string ignored = exchange::ignored_text(*imported); !ignored.empty())
      print_message("not kept: {}", escape_control_chars(ignored));
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
