// tt report FILE: writes a report about a session as HTML, Markdown or JSON.
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/report/report.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/report/report_text.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

const std::map<std::string, ReportFormat>& formats() {
  static const std::map<std::string, ReportFormat> all = {{"html", ReportFormat::Html},
                                                          {"md", ReportFormat::Markdown},
                                                          {"json", ReportFormat::JsonText}};
  return all;
}

struct ReportOptions {
  std::string file;
  std::filesystem::path output = "-";
  std::optional<ReportFormat> format;
  bool json = false, force = false;

  // --json or --format, otherwise from the extension of the output file, otherwise HTML.
  ReportFormat selected_format() const {
    if (json) return ReportFormat::JsonText;
    if (format) return *format;
    const auto by_extension = output.has_extension()
                                  ? formats().find(output.extension().string().substr(1))
                                  : formats().end();
    return by_extension == formats().end() ? ReportFormat::Html : by_extension->second;
  }
};

int run(const ReportOptions& options) {
  const ReportFormat format = options.selected_format();
  Progress progress("report", progress_visibility(format == ReportFormat::JsonText));
  const bool to_stdout = options.output == "-";
  if (!to_stdout) {
    if (const auto error =
            output_path_error(options.output, Target::FileOrPipe, {options.file}, options.force))
      return progress.failed(*error);
  }
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  const auto figures = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return SessionIndex::build(session, progress.start_steps("reading", session))
        .and_then([&](const SessionIndex& index) {
          return gather_report_data(options.file, index, session,
                                    progress.start("computing figures"),
                                    [&](const char* what) { progress.start(what); });
        });
  });
  if (!figures) return progress.failed(figures.error());
  progress.end();
  const std::string text = text_of(report_of(*figures), format);
  if (to_stdout) {
    print_line("{}", text);
  } else if (const auto written = exchange::write_file(options.output, text); !written) {
    return progress.failed(written.error());
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_report_command(CLI::App& command) {
  auto options = std::make_shared<ReportOptions>();
  add_session_file(command, options->file);
  command.add_option("-o,--output", options->output, "File to write (default: -, stdout)")
      ->type_name("FILE");
  auto* format =
      command
          .add_option(
              "--format", options->format,
              "Output format: html (one self-contained file), md (Markdown without charts) or "
              "json (default: from the file extension, else html)")
          ->transform(choice(formats()))
          ->type_name("FORMAT");
  command.add_flag("--json", options->json, "Same as --format json")->excludes(format);
  command.add_flag("--force", options->force, "Replace an existing file");
  command.footer(
      "Example: tt report s.ttrace -o report.html\n"
      "         tt report s.ttrace -o report.md");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
