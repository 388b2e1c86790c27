// tt hot FILE: the most and least accessed tensors, layers, ops..., as a table or JSON.
#include <algorithm>
#include <format>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/summed_steps.h"
#include "analysis/common/format_units.h"
#include "api/json/result_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/enum_names.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

struct HotOptions {
  std::string file;
  HotQuery query;
  FilterOptions part;
  std::optional<double> hot_percent, cold_percent;
  std::string phase;
  LeaveOut leave_out = LeaveOut::Nothing;
  std::size_t limit = 20;
  bool json = false;
};

TextTable make_table(const char* rows) {
  return TextTable({rows, "heat", ">read", ">written", ">accesses", ">time", ">step: median", ">p5",
                    ">p95", ">per second", ">faults"});
}

// `step`: of one step; none: its cells are empty.
void add_sums(TextTable& table, const std::string& name, const char* heat, const TraceSums& sums,
              const std::optional<StepTimes>& step = {}) {
  const auto in_a_step = [&](Ns Spread::* quantile) {
    return step ? format_duration(step->spread.*quantile) : "";
  };
  table.add(name, heat, format_bytes(sums.bytes_read), format_bytes(sums.bytes_written),
            std::format("{:.0f}", sums.accesses()), format_duration(sums.time_ns),
            in_a_step(&Spread::median), in_a_step(&Spread::p5), in_a_step(&Spread::p95),
            sums.time_ns > 0 ? format_bytes(sums.bytes_per_second()) : "",
            sums.faults > 0 ? std::format("{:.0f}", sums.faults) : "");
}

void print_tables(const HotCold& hot, const Breakdown& all) {
  TextTable sums = make_table("session");
  add_sums(sums, "total", "", all.total.all);
  add_sums(sums, "prompt", "", all.total.prompt);
  add_sums(sums, "generate", "", all.total.generate, all.total.step);
  add_sums(sums, "disk", "", all.disk);
  add_sums(sums, "buffers", "", all.buffer);
  sums.print();
  put("\n");
  const bool by_step = hot.value == Value::Time && !is_temporal(hot.by);
  const auto value_of = [&](const HotCold::Class& of) {
    return by_step ? static_cast<double>(of.step.v) : of.sums.of(hot.value);
  };
  double value = 0;
  for (const HotCold::Class& of : hot.classes) value += value_of(of);
  for (std::size_t i = 0; i < hot.classes.size(); ++i) {
    const HotCold::Class& of = hot.classes[i];
    print_line("{}: {} of {} rows, {:.1f} % of {}", to_text(static_cast<Heat>(i)), of.rows,
               hot.row_count, value > 0 ? 100 * value_of(of) / value : 0.0,
               by_step ? "the median times of a step" : to_text(hot.value));
  }
  if (hot.times) print_line("{}", to_text(*hot.times));
  if (!hot.note.empty()) print_line("{}", hot.note);
  put("\n");
  TextTable rows = make_table(
      hot.by == Axis::Tensor && hot.kind == TensorKind::Weight ? "weight" : to_text(hot.by));
  for (const HotCold::Row& row : hot.rows)
    add_sums(rows, row.row.name, to_text(row.heat), row.row.all, row.row.step);
  rows.print();
  if (hot.row_count > hot.rows.size())
    print_line("... {} more (use --limit N)", hot.row_count - hot.rows.size());
  if (hot.other_kinds.empty()) return;
  put("\n");
  TextTable kinds = make_table("not weights");
  for (const auto& [kind, of_kind] : hot.other_kinds) add_sums(kinds, to_text(kind), "", of_kind);
  kinds.print();
  print_line("Their tensors: --kind input, kv or intermediate.");
}

int run(const HotOptions& options) {
  Progress progress("hot", progress_visibility(options.json));
  HotQuery query = options.query;
  query.set_shares(options.hot_percent, options.cold_percent);
  if (query.hot_share + query.cold_share > 1) {
    return progress.failed(
        std::format("--hot {} and --cold {} overlap: together they must be at most 100.",
                    100 * query.hot_share, 100 * query.cold_share));
  }
  const auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  auto filter = filter_of(options.part, *reader);
  if (!filter) return progress.failed(filter.error());
  const auto index =
      SessionIndex::build(*reader, progress.start_steps("reading", *reader), options.leave_out);
  if (!index) return progress.failed(index.error());
  const ContinueCheck summing = progress.start("aggregating");
  query.filter = *std::move(filter);
  query.page = {.from = 0, .limit = options.limit};
  query.step_times = true;
  if (options.phase == "prompt") query.filter.phase = Phase::Prompt;
  if (options.phase == "generate") query.filter.phase = Phase::Generate;
  const auto all = breakdown(
      *index, {.by = Axis::All, .filter = query.filter, .order = {}, .step_times = true}, summing);
  if (!all) return progress.failed(all.error());
  const auto hot = hot_cold(*index, query, summing);
  if (!hot) return progress.failed(hot.error());
  progress.end();
  if (hot->row_count == 0 && !hot->note.empty()) {
    print_message("tt hot: {}", hot->note);
    return 1;
  }
  progress.note_missing_accesses(*reader);
  if (!index->damaged().empty())
    progress.warn(std::format("{} damaged steps were skipped", index->damaged().size()));
  if (options.json) {
    Json out = to_json(*hot), whole = to_json(*all);
    for (const char* sums : {"sums", "disk", "buffer", "damaged_steps"})
      out[sums] = std::move(whole[sums]);
    out[kSummedSteps] = to_json(summed_steps(*index, {&query.filter, 1}));
    put_line(text_of(out));
  } else {
    print_tables(*hot, *all);
    if (index->left_out() > 0)
      print_line("{}", left_out_text(index->left_out(), index->steps().size(), "the sums"));
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_hot_command(CLI::App& command) {
  auto options = std::make_shared<HotOptions>();
  add_session_file(command, options->file);
  const auto axes =
      enum_names(Axis::All, [](Axis axis) { return !is_byte_axis(axis) && axis != Axis::Time; });
  command
      .add_option("--by", options->query.by,
                  "What each row shows: " + join(axes | std::views::keys) + " (default: tensor)")
      ->transform(choice(axes))
      ->type_name("AXIS");
  const auto values = enum_names(Value::Faults, [](Value) { return true; });
  command
      .add_option("--value", options->query.value,
                  "Value that the rows are sorted by: " + join(values | std::views::keys) +
                      " (default: accesses; bytes or time if most rows have equally many)")
      ->transform(choice(values))
      ->type_name("VALUE");
  command
      .add_option("--hot", options->hot_percent,
                  "Percentage of the rows that are hot, from the highest value down; rows with "
                  "equal values are never divided")
      ->check(number({.name = "per cent", .min = 0, .max = 100}))
      ->default_str("10");
  command
      .add_option("--cold", options->cold_percent,
                  "Percentage of the rows that are cold, from the lowest value up; by default at "
                  "most what --hot leaves")
      ->check(number({.name = "per cent", .min = 0, .max = 100}))
      ->default_str("50");
  command.add_option("--phase", options->phase, "Phase of the steps: prompt or generate")
      ->transform(one_of({"prompt", "generate"}))
      ->type_name("PHASE");
  command
      .add_option("--tensor", options->part.filter.tensor,
                  "Substring of the tensor name; may contain * and ?")
      ->type_name("TEXT");
  command
      .add_option("--op", options->part.filter.op,
                  "Substring of the op type or of the name of its output; may contain * and ?")
      ->type_name("TEXT");
  add_filter_options(command, options->part);
  add_clean_option(command, options->leave_out, "all sums");
  add_limit_option(command, options->limit, "Maximum number of rows", "--limit,--top");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example: tt hot s.ttrace --by layer --value time");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
