// tt parse FILE: lists accesses as rows, summarizes them, or validates the recording. Exit code 1
// if
// --validate fails.
#include <algorithm>
#include <cstdint>
#include <format>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "analysis/accesses/query_check.h"
#include "analysis/aggregate/session_statistics.h"
#include "analysis/common/format_units.h"
#include "analysis/common/op_info.h"
#include "analysis/common/session_layers.h"
#include "analysis/report/validation.h"
#include "api/json/analysis/statistics_json.h"
#include "api/json/result_json.h"
#include "api/json/trace_json.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

struct ParseOptions {
  std::string file;
  std::size_t limit = 20;
  AccessQuery rows;
  LayerSet layers = LayerSet::all();  // of the tensors
  StepRangeOptions steps;
  bool stats = false, validate = false, json = false;
};

std::string file_offset_text(const FileRange& range) {
  return range.empty() ? "" : std::format("{}:{:#x}", range.file, range.offset);
}

// The tokens that the step evaluated: "4", "0-3".
std::string tokens_text(const StepFacts& step) {
  if (step.n_tokens == 0) return "";
  if (step.n_tokens == 1) return std::to_string(step.first_token);
  return std::format("{}-{}", step.first_token, step.first_token + step.n_tokens - 1);
}

void print_rows(const AccessPage& page) {
  TextTable table({">step", ">time", ">token", "phase", ">op", "operation", "access", "tensor",
                   ">layer", "component", ">bytes", "source", ">file:offset", ">expert"});
  for (const AccessRow& row : page.rows) {
    const StepAccess& access = row.access;
    const Tensor& tensor = row.tensor();
    table.add(row.place.step.v, format_duration(row.begin), tokens_text(*row.step),
              to_text(row.step->phase), access.op.v,
              op_name(row.graph(), row.graph().op(access.op)), access.write ? "write" : "read",
              tensor.name, tensor.layer == kNoLayer ? "" : std::to_string(tensor.layer.v),
              to_text(tensor.component), access.touched.v, to_text(tensor.source),
              file_offset_text(access.range),
              access.expert < 0 ? "" : std::to_string(access.expert));
  }
  table.print();
  if (page.next) print_line("... more (use --limit N)");
}

void print_checks(const Validation& validation) {
  for (const CheckResult& check : validation.checks) {
    const char* status = check.status == CheckStatus::Passed       ? "ok"
                         : check.status == CheckStatus::Incomplete ? "missing"
                         : check.status == CheckStatus::Failed     ? "FAILED"
                                                                   : "-";
    print_line("{:<12} {:<7} {}", to_text(check.check), status, check.summary);
    for (const std::string& wrong : check.evidence)
      print_line("{:<20} {}", "", escape_control_chars(wrong));
    if (check.wrong > check.evidence.size())
      print_line("{:<20} and {} more", "", check.wrong - check.evidence.size());
  }
  print_line("The recording is {}.", validation.verdict());
}

int validate_file(const ParseOptions& options, Progress& progress) {
  recover_if_unfinished(options.file);
  const auto validation = validate(options.file, progress.start("validating"));
  if (!validation) return progress.failed(validation.error());
  progress.end();
  if (options.json) {
    put_line(text_of(to_json(*validation)));
  } else {
    print_checks(*validation);
  }
  return validation->passed() ? 0 : 1;
}

std::string name_of(const std::string& name) { return name; }
std::string name_of(LayerId layer) { return layer == kNoLayer ? "none" : std::to_string(layer.v); }
template <class Enum>
std::string name_of(Enum value) {
  return to_text(value);
}

// MostBytesFirst: for keys without a natural order.
enum class RowOrder : bool { ByKey, MostBytesFirst };

template <class Key>
void print_sums(const char* of, const std::map<Key, AccessSums>& sums, RowOrder order,
                std::uint64_t all, std::size_t limit = SIZE_MAX) {
  if (sums.empty()) return;
  std::vector<std::pair<Key, AccessSums>> rows(sums.begin(), sums.end());
  if (order == RowOrder::MostBytesFirst) {
    std::ranges::stable_sort(
        rows, [](const auto& a, const auto& b) { return a.second.touched() > b.second.touched(); });
  }
  const std::size_t more = rows.size() - std::min(rows.size(), limit);
  rows.resize(rows.size() - more);
  TextTable table({of, ">accesses", ">read", ">written", ">of all bytes"});
  for (const auto& [key, sum] : rows) {
    const auto touched = static_cast<double>(sum.touched().v);
    table.add(name_of(key), sum.accesses, format_bytes(sum.read), format_bytes(sum.written),
              std::format("{:.1f} %", all == 0 ? 0 : 100 * touched / static_cast<double>(all)));
  }
  put("\n");
  table.print();
  if (more > 0) print_line("... {} more (use --limit N)", more);
}

void print_statistics(const SessionStatistics& stats, std::size_t limit) {
  print_line("{}, {} evaluated, {}", counted(stats.steps, "step"), counted(stats.tokens, "token"),
             format_duration(stats.time));
  for (const auto& [phase, spread] : stats.step_times) {
    print_line("{} step: median {}, p5 {}, p95 {}", to_text(phase), format_duration(spread.median),
               format_duration(spread.p5), format_duration(spread.p95));
  }
  if (stats.ops == 0) return;
  print_line("{}, {}, {} read, {} written", counted(stats.ops, "op"),
             counted(stats.all.accesses, "access"), format_bytes(stats.all.read),
             format_bytes(stats.all.written));
  const std::string tensors = join(stats.tensors, [&](const auto& row) {
    const auto& [kind, count] = row;
    const std::string text = std::format("{} {}", count, to_text(kind));
    if (kind != TensorKind::Weight) return text;
    return std::format("{} ({})", text, format_bytes(stats.weights_size));
  });
  print_line("distinct tensors: {}", tensors.empty() ? "none" : tensors);
  const std::uint64_t all = stats.all.touched().v;
  print_sums("phase", stats.phases, RowOrder::ByKey, all);
  print_sums("layer", stats.layers, RowOrder::ByKey, all);
  print_sums("op", stats.op_kinds, RowOrder::MostBytesFirst, all);
  print_sums("component", stats.components, RowOrder::MostBytesFirst, all);
  print_sums("source", stats.sources, RowOrder::MostBytesFirst, all);
  print_sums("weight", stats.weights, RowOrder::MostBytesFirst, all, limit);
}

int show_statistics(const SessionReader& reader, const ParseOptions& options, Progress& progress) {
  const auto index =
      SessionIndex::build(reader, progress.start_steps("reading", reader), options.rows.leave_out);
  if (!index) return progress.failed(index.error());
  progress.end();
  StatisticsQuery query;
  query.layers = options.layers;
  const SessionStatistics stats = session_statistics(*index, query);
  if (stats.damaged_steps > 0)
    progress.warn(std::format("{} damaged steps were skipped", stats.damaged_steps));
  progress.note_missing_accesses(reader);
  if (options.json) {
    Json out = to_json(stats, options.limit);
    if (index->leave_out() != LeaveOut::Nothing) out["left_out_steps"] = index->left_out();
    put_line(text_of(out));
  } else {
    print_statistics(stats, options.limit);
    if (index->left_out() > 0)
      print_line("{}", left_out_text(index->left_out(), index->steps().size(), "the sums"));
  }
  return progress.exit_code();
}

// Of all steps: how many the rows leave out.
std::expected<std::pair<std::uint64_t, std::uint64_t>, TraceError> count_left_out(
    const SessionReader& reader, LeaveOut leave_out) {
  std::uint64_t left_out = 0, all = 0;
  const auto read = reader.for_each_step_row(
      StepId{0}, reader.readable_steps().value_or(std::numeric_limits<std::uint32_t>::max()),
      [&](const SessionReader::StepRow& row) {
        ++all;
        left_out += is_left_out(leave_out, row.head.conditions, row.head.threads);
        return true;
      });
  if (!read) return std::unexpected(read.error());
  return std::pair(left_out, all);
}

int run(const ParseOptions& options) {
  Progress progress("parse", progress_visibility(options.json));
  if (options.validate) return validate_file(options, progress);
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  if (options.stats) {
    if (const auto known = validate_layers(*reader, options.layers); !known)
      return progress.failed(known.error());
    return show_statistics(*reader, options, progress);
  }
  const auto info = reader->info();
  if (!info) return progress.failed(info.error());
  AccessQuery query = options.rows;
  if (const auto error = options.steps.error()) return progress.failed(*error);
  query.first_step = StepId{options.steps.from};
  if (options.steps.to) query.last_step = StepId{static_cast<std::uint32_t>(*options.steps.to - 1)};
  query.filter.tensor.layers = options.layers;
  if (const auto known = check_access_query(*reader, query); !known)
    return progress.failed(known.error());
  const auto page = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return access_page(session, query, std::nullopt, options.limit,
                       progress.start("searching for accesses"));
  });
  if (!page) return progress.failed(page.error());
  progress.end();
  if (options.json) {
    put_line(text_of(accesses_json(*page, info->id, query)));
  } else if (!page->rows.empty()) {
    print_rows(*page);
  }
  if (query.leave_out != LeaveOut::Nothing) {
    const auto left_out = count_left_out(*reader, query.leave_out);
    if (!left_out) return progress.failed(left_out.error());
    if (left_out->first > 0)
      progress.note(left_out_text(left_out->first, left_out->second, "the rows"));
  }
  if (page->rows.empty() && options.limit > 0 && !progress.note_missing_accesses(*reader)) {
    const std::string filters = join(filter_texts(query));
    return progress.failed(filters.empty()
                               ? "no step of the session has accesses"
                               : std::format("no access passes all filters: {}. Each exists in the "
                                             "session; use fewer of them.",
                                             filters));
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_parse_command(CLI::App& command) {
  auto options = std::make_shared<ParseOptions>();
  add_session_file(command, options->file);
  add_limit_option(command, options->limit, "Maximum number of rows, or of weights with --stats");
  add_layers_option(command, options->layers, "Layers of the tensors",
                    "tensors outside all layers");
  CLI::Option* stats = command.add_flag("--stats", options->stats,
                                        "Print sums instead of accesses: in total and by phase, "
                                        "layer, op, component, source, weight");
  command
      .add_flag("--validate", options->validate,
                "Validate the recording; exit code 1 if a check fails")
      ->excludes(stats);
  for (CLI::Option* option : add_access_options(command, options->rows)) option->excludes(stats);
  for (CLI::Option* option : add_step_range_options(command, options->steps))
    option->excludes(stats);
  add_clean_option(command, options->rows.leave_out, "the rows and sums");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example: tt parse s.ttrace --layers 5 --limit 100\n"
      "         tt parse s.ttrace --tensor attn_q --phase generate --source disk\n"
      "         tt parse s.ttrace --stats");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
