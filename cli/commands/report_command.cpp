// tt report FILE: writes a report about a session as HTML, Markdown or JSON.
#include <cstdio>
#include <expected>
#include <filesystem>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/report/report.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/report/report_text.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
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
  std::string file, compare;  // compare: another session file; empty: none
  std::filesystem::path output = "-";
  std::optional<ReportFormat> format;
  LeaveOut leave_out = LeaveOut::Nothing;
  bool json = false, force = false;

  // --json or --format, otherwise from the extension of the output file; HTML without one. None:
  // an extension of another format.
  std::optional<ReportFormat> selected_format() const {
    if (json) return ReportFormat::JsonText;
    if (format || !output.has_extension()) return format.value_or(ReportFormat::Html);
    const auto by_extension = formats().find(output.extension().string().substr(1));
    return by_extension == formats().end() ? std::nullopt : std::optional(by_extension->second);
  }
};

int run(const ReportOptions& options) {
  const std::optional<ReportFormat> selected = options.selected_format();
  Progress progress("report", progress_visibility(selected == ReportFormat::JsonText));
  const bool to_stdout = options.output == "-";
  std::filesystem::path output;
  if (!to_stdout) {
    auto path = output_path(options.output, Target::FileOrPipe, {options.file, options.compare},
                            options.force);
    if (!path) return progress.failed(path.error());
    output = *std::move(path);
  }
  if (!selected) {
    return progress.failed(std::format(
        "{}: a report is html, md or json. {}", options.output.string(),
        options.output.extension() == ".pdf"
            ? "For a PDF write report.html, open it in a browser and print it to a file."
            : "Use one of these extensions, or --format."));
  }
  const ReportFormat format = *selected;
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  std::optional<SessionReader> other;
  if (!options.compare.empty()) {
    auto opened = open_session(options.compare);
    if (!opened) return progress.failed(opened.error());
    other = *std::move(opened);
  }
  std::optional<ReportComparison> compared;
  // Of the readable part of the other session.
  const auto compare_with_other = [&](const SessionIndex& index, const SessionReader& session) {
    return progress.query_valid_prefix(*other, [&](const SessionReader& right) {
      return SessionIndex::build(right, progress.start_steps("reading", right), options.leave_out)
          .and_then([&](const SessionIndex& right_index) {
            return gather_report_comparison({.index = index, .reader = session},
                                            {.index = right_index, .reader = right},
                                            progress.start("comparing"));
          });
    });
  };
  const auto figures = progress.query_valid_prefix(
      *reader, [&](const SessionReader& session) -> std::expected<ReportData, TraceError> {
        const auto index = SessionIndex::build(session, progress.start_steps("reading", session),
                                               options.leave_out);
        if (!index) return std::unexpected(index.error());
        if (other) {
          auto both = compare_with_other(*index, session);
          if (!both) return std::unexpected(both.error());
          compared = *std::move(both);
        }
        return gather_report_data(options.file, *index, session,
                                  progress.start("computing figures"),
                                  [&](const char* what) { progress.start(what); });
      });
  if (!figures) return progress.failed(figures.error());
  progress.end();
  const std::string text = text_of(report_of(*figures, compared ? &*compared : nullptr), format);
  if (to_stdout) {
    print_line("{}", text);
  } else if (const auto written = exchange::write_file(output, text); !written) {
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
  command
      .add_option("--compare", options->compare,
                  "Another session file: the report begins with what differs from it")
      ->type_name("FILE");
  add_clean_option(command, options->leave_out, "all times and sums of ops");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.footer(
      "Example: tt report s.ttrace -o report.html\n"
      "         tt report s.ttrace --compare before.ttrace -o report.md");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
