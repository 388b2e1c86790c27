// tt analyze NAME FILE: the answer of one row of analysis/analyses.h, as tables or JSON.
#include <algorithm>
#include <cstddef>
#include <expected>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/analyses.h"
#include "analysis/index/session_index.h"
#include "api/json/result_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/result_table.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

struct AnalyzeOptions {
  std::string name, file;
  std::vector<std::string> parameters;  // "by=type"
  bool json = false;
};

void print_analyses() {
  TextTable table({"name", "question"});
  for (const Analysis& row : analyses()) table.add(row.name, row.summary);
  table.print();
}

void print_parameters(const Analysis& row) {
  print_line("{}.", row.summary);
  if (row.parameters.empty()) return;
  put("\n");
  TextTable table({"parameter", "default", ""});
  for (const ParameterInfo& info : row.parameters) {
    std::string meaning = info.meaning;
    if (!info.words.empty()) meaning += (meaning.empty() ? "" : ": ") + join(info.words);
    table.add(info.name, info.default_value, meaning);
  }
  table.print();
}

int run(const AnalyzeOptions& options) {
  if (options.name.empty()) {
    print_analyses();
    return 0;
  }
  Progress progress("analyze", progress_visibility(options.json));
  const Analysis* const row = find_analysis(options.name);
  if (row == nullptr) {
    return progress.failed(std::format(
        "\"{}\" is not an analysis. `tt analyze` without arguments lists them.", options.name));
  }
  if (options.file.empty()) {
    progress.end();
    print_parameters(*row);
    return 0;
  }
  std::map<std::string, std::string> given;
  for (const std::string& text : options.parameters) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos ||
        !std::ranges::contains(row->parameters, name, &ParameterInfo::name)) {
      return progress.failed(std::format(
          "\"{}\" is not a parameter of {}. `tt analyze {}` lists them; write them as NAME=VALUE.",
          name, row->name, row->name));
    }
    given[name] = text.substr(equals + 1);
  }
  for (const ParameterInfo& info : row->parameters) {
    if (info.in_path && !given.contains(info.name))
      return progress.failed(std::format("Set {}=NUMBER: {}.", info.name, info.meaning));
  }
  const ParameterText parameters = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = given.find(name);
    return found == given.end() ? std::nullopt : std::optional(found->second);
  };
  const auto question = row->parse(parameters);
  if (!question) {
    const ParameterError& error = question.error();
    return progress.failed(
        error.name.empty() ? error.detail
                           : std::format("{}={} {}", error.name, given[error.name], error.detail));
  }
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  bool is_empty = false;
  std::size_t damaged_steps = 0;
  const auto answer = progress.query_valid_prefix(
      *reader, [&](const SessionReader& session) -> std::expected<fields::Value, TraceError> {
        const Subject plain = subject_of(session);
        std::shared_ptr<const SessionIndex> index;  // built once
        const Subject subject{
            .reader = session, .index = [&](LeaveOut leave_out, const ContinueCheck& keep_going) {
              using Built = std::expected<std::shared_ptr<const SessionIndex>, TraceError>;
              if (index != nullptr) return Built(index);
              return plain.index(leave_out, keep_going).transform([&](auto built) {
                damaged_steps = built->damaged().size();
                return index = std::move(built);
              });
            }};
        if (row->matches_nothing) {
          const auto empty = row->matches_nothing(parameters, subject, progress.start("reading"));
          if (!empty) return std::unexpected(empty.error());
          is_empty = *empty;
        }
        return (*question)(subject, progress.start("computing"));
      });
  if (answer && is_empty) return progress.failed(kNothingMatches);
  if (!answer) return progress.failed(answer.error());
  progress.note_missing_accesses(*reader);
  if (const std::string* why = does_not_apply(*answer)) return progress.failed(*why);
  progress.end();
  if (damaged_steps > 0) progress.warn(std::format("{} damaged steps were skipped", damaged_steps));
  if (options.json) {
    put_line(text_of(json_of(*answer)));
  } else {
    print_result(*answer, row->schema);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_analyze_command(CLI::App& command) {
  auto options = std::make_shared<AnalyzeOptions>();
  command.add_option("name", options->name, "Analysis; without it, all are listed");
  command.add_option("file", options->file,
                     "Session file (.ttrace); without it, the parameters of the analysis are "
                     "listed");
  command
      .add_option("parameters", options->parameters,
                  "Parameters of the analysis, as in REST: by=type phase=generate")
      ->type_name("NAME=VALUE");
  command.add_flag("--json", options->json, "Print JSON, as REST returns it");
  command.footer("Example: tt analyze hot s.ttrace by=type");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
