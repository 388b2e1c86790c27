#include "cli/parse_command.h"

#include <cstdint>
#include <cstdio>
#include <format>
#include <memory>
#include <optional>
#include <print>
#include <string>

#include "analysis/access_table.h"
#include "analysis/validation.h"
#include "api/trace_json.h"
#include "api/validation_json.h"
#include "cli/options/tracer_options.h"
#include "cli/text_table.h"
#include "tracer/format/session_reader.h"

namespace tt::cli {
namespace {

struct ParseOptions {
  std::string file;
  std::size_t limit = 20;
  std::optional<std::int32_t> layer;
  bool validate = false, json = false;
};

int fail(const std::string& message) {
  std::println(stderr, "tt parse: {}", message);
  return 1;
}

std::string place_in_file(const FileRange& range) {
  return range.empty() ? "" : std::format("{}:{:#x}", range.file, range.offset);
}

void print_rows(const AccessPage& page) {
  TextTable table({{"step", Align::Right},
                   {"op", Align::Right},
                   {"access"},
                   {"tensor"},
                   {"layer", Align::Right},
                   {"component"},
                   {"bytes", Align::Right},
                   {"source"},
                   {"file:offset", Align::Right},
                   {"expert", Align::Right}});
  for (const AccessRow& row : page.rows) {
    const StepAccess& access = row.access;
    table.add({std::to_string(row.place.step.v), std::to_string(access.op.v),
               access.write ? "write" : "read", row.name,
               row.layer == kNoLayer ? "" : std::to_string(row.layer.v), to_text(row.component),
               std::to_string(access.touched.v), to_text(row.source), place_in_file(access.range),
               access.expert < 0 ? "" : std::to_string(access.expert)});
  }
  table.print(stdout);
  if (page.next) std::println("... more: --limit N shows them");
}

void print_checks(const Validation& validation) {
  for (const CheckResult& check : validation.checks) {
    const char* verdict = check.verdict == Verdict::Passed   ? "ok"
                          : check.verdict == Verdict::Failed ? "FAILED"
                                                             : "-";
    std::println("{:<12} {:<7} {}", to_text(check.check), verdict, check.summary);
    for (const std::string& wrong : check.evidence) std::println("{:<20} {}", "", wrong);
    if (check.wrong > check.evidence.size())
      std::println("{:<20} and {} more", "", check.wrong - check.evidence.size());
  }
  std::println("{}",
               validation.passed() ? "The recording is sound." : "The recording is NOT sound.");
}

int validate_file(const ParseOptions& options) {
  const auto validation = validate(options.file);
  if (!validation) return fail(validation.error().message);
  if (options.json) {
    std::println("{}", text_of(to_json(*validation)));
  } else {
    print_checks(*validation);
  }
  return validation->passed() ? 0 : 1;
}

int run(const ParseOptions& options) {
  if (options.validate) return validate_file(options);
  const auto reader = SessionReader::open(options.file);
  if (!reader) return fail(reader.error().message);
  const auto info = reader->info();
  if (!info) return fail(info.error().message);
  AccessQuery query;
  if (options.layer) query.filter.tensor.layer = LayerId{*options.layer};
  const auto page = access_page(*reader, query, std::nullopt, options.limit);
  if (!page) return fail(page.error().message);
  if (options.json) {
    std::println("{}", text_of(accesses_json(*page, info->id, query)));
  } else {
    print_rows(*page);
  }
  return 0;
}

}  // namespace

CLI::App* add_parse_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ParseOptions>();
  CLI::App* command =
      app.add_subcommand("parse", "A session's accesses as rows, or whether it is sound");
  command->add_option("file", options->file, "A session, .ttrace")->required()->type_name("FILE");
  command->add_option("--limit", options->limit, "Rows to show (default: 20)")->type_name("N");
  command->add_option("--layer", options->layer, "Only accesses to tensors of this layer")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("N");
  command->add_flag("--validate", options->validate,
                    "Hold the recording against itself; exit code 1 when something is wrong");
  command->add_flag("--json", options->json, "For programs: JSON on stdout");
  command->footer("Example: tt parse s.ttrace --layer 5 --limit 100");
  name_environment(*command);
  command->callback([options, &exit_code] { exit_code = run(*options); });
  return command;
}

}  // namespace tt::cli
