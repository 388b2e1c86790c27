// tt compare LEFT RIGHT: compares two sessions, or two sets of sessions (compare_sets.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/report/comparison.h"
#include "analysis/report/values_difference.h"
#include "api/json/analysis/comparison_json.h"
#include "api/text/cause_text.h"
#include "api/text/change_text.h"
#include "api/text/escape_control_chars.h"
#include "api/text/shape_text.h"
#include "cli/commands/compare_sets.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/enum_names.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

struct CompareOptions {
  std::string left, right;
  Axis by = Axis::OpKind;
  std::optional<Phase> phase;
  std::size_t limit = 20;
  LeaveOut leave_out = LeaveOut::Nothing;
  bool values = false, json = false;
  double tolerance = kDefaultTolerance;  // of relative errors of values
};

std::string ratio(double left, double right) {
  return left > 0 ? std::format("{:.3f}", right / left) : "";
}

// A mean of counts: "12", "12.5".
std::string count_text(double value) {
  return std::format("{:.{}f}", value, value == std::round(value) ? 0 : 1);
}

// The first 60 bytes of a long text such as a prompt, cut at a UTF-8 character boundary.
std::string shortened(std::string text) {
  constexpr std::size_t kLength = 60;
  std::ranges::replace(text, '\n', ' ');
  if (text.size() <= kLength) return text;
  std::size_t end = kLength;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Right minus left.
std::string difference(double left, double right, std::string (*text)(double)) {
  return (right < left ? "-" : "+") + text(std::abs(right - left));
}

void print_facts(const std::vector<ComparedFact>& facts) {
  if (facts.empty()) return;
  TextTable table({"fact", "left", "right"});
  for (const ComparedFact& fact : facts) {
    const auto cell = [](const std::optional<std::string>& value) {
      return value ? shortened(*value) : std::string("-");
    };
    table.add(fact.name, cell(fact.left), cell(fact.right));
  }
  table.print();
  put("\n");
}

void print_causes(const std::vector<DifferenceCause>& causes) {
  if (causes.empty()) {
    print_line("{}", kNoCause);
  } else {
    print_line("Causes of differences:");
    for (const DifferenceCause& cause : causes)
      print_line("- {}", escape_control_chars(cause_line(cause)));
  }
  put("\n");
}

// Of what durations of steps are.
void print_counted(const Comparison& comparison) {
  for (const auto& [phase, times] : comparison.step_times) {
    if (times.left) print_line("left:  {}", to_text(times.left->steps));
    if (times.right) print_line("right: {}", to_text(times.right->steps));
  }
}

void print_totals(const Comparison& comparison) {
  const TraceSums left = comparison.total.left.value_or(TraceSums{}),
                  right = comparison.total.right.value_or(TraceSums{});
  const std::string heading = std::format("{} step", to_text(comparison.phase));
  TextTable table({heading, ">left", ">right", ">right-left", ">right/left"});
  const auto row = [&](const char* name, double a, double b, std::string (*text)(double)) {
    table.add(name, text(a), text(b), difference(a, b, text), ratio(a, b));
  };
  row("ops", left.executions, right.executions, count_text);
  row("accesses", left.accesses(), right.accesses(), count_text);
  row("bytes read", left.bytes_read, right.bytes_read, format_bytes);
  row("bytes written", left.bytes_written, right.bytes_written, format_bytes);
  const auto time_row = [&](const std::string& name, Phase phase, double a, double b) {
    const bool comparable = a > 0 && b > 0 && is_comparable(comparison, phase);
    table.add(name, step_time_text(a), step_time_text(b),
              comparable ? difference(a, b, format_duration) : "-", comparable ? ratio(a, b) : "-");
  };
  if (left.time_ns > 0 || right.time_ns > 0)
    time_row("time in ops, median", comparison.phase, left.time_ns, right.time_ns);
  static constexpr std::pair<const char*, Ns Spread::*> kQuantiles[] = {
      {"median", &Spread::median}, {"p5", &Spread::p5}, {"p95", &Spread::p95}};
  for (const auto& [phase, times] : comparison.step_times) {
    if (!times.left || !times.right) continue;
    for (const auto& [name, quantile] : kQuantiles) {
      const auto ns = [&](const CountedTimes& of) {
        return of.spread ? static_cast<double>(((*of.spread).*quantile).v) : 0;
      };
      time_row(std::format("{} step, {}", to_text(phase), name), phase, ns(*times.left),
               ns(*times.right));
    }
  }
  table.print();
  print_counted(comparison);
}

void print_tokens(const Comparison& comparison) {
  print_line("\n{} on the left, {} on the right. {}", counted(comparison.tokens.left, "token"),
             comparison.tokens.right, tokens_text(comparison));
}

void print_templates(const Comparison& comparison) {
  std::array<int, 4> counts{};
  for (const ComparedTemplate& row : comparison.templates)
    ++counts[static_cast<std::size_t>(row.match)];
  print_line("graphs: {} identical, {} with the same ops, {} only left, {} only right. {}",
             counts[0], counts[1], counts[2], counts[3], graphs_text(comparison));
}

void print_rows(const Comparison& comparison, Axis by, std::size_t limit) {
  const std::vector<ComparedRow>& rows = comparison.rows;
  if (rows.empty()) return;
  print_line("\nIn one {} step: counts and bytes are means, times are medians.",
             to_text(comparison.phase));
  TextTable table({to_text(by), ">accesses left", ">accesses right", ">bytes left", ">bytes right",
                   ">bytes right/left", ">time left", ">time right", ">time right-left",
                   ">time right/left"});
  const TraceSums none;
  const bool enough = is_comparable(comparison, comparison.phase);
  // What only one side has took no time on the other one.
  const auto comparable = [&](const ComparedRow& row) {
    const auto measured = [](const std::optional<TraceSums>& side) {
      return !side || side->time_ns > 0;
    };
    return enough && measured(row.left) && measured(row.right);
  };
  for (const ComparedRow& row : rows | std::views::take(limit)) {
    const TraceSums a = row.left.value_or(none), b = row.right.value_or(none);
    const auto cell = [](const auto& side, const std::string& text) {
      return side ? text : std::string("-");
    };
    table.add(row.name, cell(row.left, count_text(a.accesses())),
              cell(row.right, count_text(b.accesses())), cell(row.left, format_bytes(a.bytes())),
              cell(row.right, format_bytes(b.bytes())), ratio(a.bytes(), b.bytes()),
              cell(row.left, step_time_text(a.time_ns)), cell(row.right, step_time_text(b.time_ns)),
              comparable(row) ? difference(a.time_ns, b.time_ns, format_duration) : "-",
              comparable(row) ? ratio(a.time_ns, b.time_ns) : "-");
  }
  table.print();
  if (rows.size() > limit) print_line("... {} more (use --limit N)", rows.size() - limit);
}

// "[2, 5, 0, 0]": the place of an element, innermost dimension first.
std::string place_text(const ValuesDifference& of) {
  std::string text = "[";
  std::size_t at = of.at;
  for (const std::uint64_t ne : of.ne) {
    text += std::format("{}{}", text.size() > 1 ? ", " : "", ne == 0 ? 0 : at % ne);
    at /= std::max<std::uint64_t>(ne, 1);
  }
  return text + "]";
}

// How errors grow.
void print_layers(const std::vector<LayerDifference>& layers) {
  if (layers.empty()) return;
  put("\n");
  TextTable table({">layer", ">outputs", ">max error", ">relative error"});
  for (const LayerDifference& of : layers)
    table.add(of.layer.v, of.outputs, std::format("{:.3g}", of.max_error),
              std::format("{:.3g}", of.relative_error));
  table.print();
}

void print_values(const ValuesComparison& comparison, const CompareOptions& options) {
  const std::uint64_t count = comparison.different;
  const std::optional<ValuesDifference>& first = comparison.first_beyond;
  print_line("{} compared: {} identical, {} different; {} only left, {} only right",
             counted(comparison.compared, "output"), comparison.compared - count, count,
             comparison.only_left, comparison.only_right);
  if (comparison.other_tokens)
    print_line(
        "From step {} on, the two runs evaluate different tokens, so their values differ. Compare "
        "the steps before it, or record both with the same tokens (--temp 0).",
        comparison.other_tokens->v);
  if (!first) {
    print_line("No output differs by more than the tolerance, a relative error of {:g}.",
               options.tolerance);
  } else if (!first->same_shape) {
    print_line("First beyond the tolerance: step {}, op {}, {} {}: another shape", first->step.v,
               first->op.v, first->operation, first->tensor);
  } else {
    print_line(
        "First beyond the tolerance: step {}, op {}, {} {}: relative error {:.3g} (tolerance "
        "{:g}), "
        "largest at {}: {:g} and {:g}",
        first->step.v, first->op.v, first->operation, first->tensor, first->relative_error,
        options.tolerance, place_text(*first), first->left, first->right);
  }
  if (count == 0) return;
  put("\n");
  TextTable table(
      {">step", ">op", "operation", "output", ">shape", ">max error", ">relative error"});
  for (const ValuesDifference& of : comparison.rows) {
    std::array<std::int64_t, 4> shape{};
    std::ranges::transform(of.ne, shape.begin(),
                           [](std::uint64_t ne) { return static_cast<std::int64_t>(ne); });
    table.add(of.step.v, of.op.v, of.operation, of.tensor, shape_text(shape),
              of.same_shape ? std::format("{:.3g}", of.max_error) : "shape",
              of.same_shape ? std::format("{:.3g}", of.relative_error) : "");
  }
  table.print();
  if (count > options.limit) print_line("... {} more (use --limit N)", count - options.limit);
  print_layers(comparison.layers);
}

int run_values(const CompareOptions& options, Progress& progress, SessionReader& left,
               SessionReader& right) {
  const ValuesQuery query{
      .tolerance = options.tolerance,
      .page = options.json ? kAllRows : PageRange{.from = 0, .limit = options.limit},
      .only_different = !options.json};
  const auto comparison = progress.query_valid_prefix(left, [&](const SessionReader&) {
    return progress.query_valid_prefix(right, [&](const SessionReader&) {
      return compare_values(left, right, query, progress.start("comparing values"));
    });
  });
  if (!comparison) return progress.failed(comparison.error());
  progress.end();
  if (comparison->compared == 0) {
    return progress.failed(
        std::format("{} and {} have no captured output in common. Record both with --capture, such "
                    "as --capture '.*@S0'.",
                    options.left, options.right));
  }
  if (options.json) {
    put_line(text_of(to_json(*comparison)));
  } else {
    print_values(*comparison, options);
  }
  return progress.exit_code();
}

int run(const CompareOptions& options) {
  Progress progress("compare", progress_visibility(options.json));
  const auto left_files = session_files({options.left}),
             right_files = session_files({options.right});
  if (!left_files) return progress.failed(left_files.error());
  if (!right_files) return progress.failed(right_files.error());
  if (left_files->set || right_files->set) {
    if (options.values)
      return progress.failed("--values compares two sessions, not sets. Name two session files.");
    return compare_sets(*left_files, *right_files,
                        {.by = options.by,
                         .limit = options.limit,
                         .leave_out = options.leave_out,
                         .json = options.json},
                        progress);
  }
  auto left = open_session(options.left), right = open_session(options.right);
  if (!left) return progress.failed(left.error());
  if (!right) return progress.failed(right.error());
  if (options.values) return run_values(options, progress, *left, *right);
  SessionInfo left_info, right_info;
  std::array<std::pair<std::size_t, std::size_t>, 2> left_out{};  // left out, of all steps
  const auto run_comparison = [&] {
    return SessionIndex::build(*left, progress.start_steps("reading the left session", *left),
                               options.leave_out)
        .and_then([&](const SessionIndex& left_index) {
          return SessionIndex::build(*right,
                                     progress.start_steps("reading the right session", *right),
                                     options.leave_out)
              .and_then([&](const SessionIndex& right_index) {
                constexpr PageRange kAllTokens{.from = 0,
                                               .limit = std::numeric_limits<std::uint32_t>::max()};
                left_out = {{{left_index.left_out(), left_index.steps().size()},
                             {right_index.left_out(), right_index.steps().size()}}};
                left_info = left_index.info();
                right_info = right_index.info();
                return compare({.index = left_index, .reader = *left},
                               {.index = right_index, .reader = *right},
                               {.by = options.by, .phase = options.phase, .tokens = kAllTokens},
                               progress.start("comparing"));
              });
        });
  };
  const auto comparison = progress.query_valid_prefix(*left, [&](const SessionReader&) {
    return progress.query_valid_prefix(*right,
                                       [&](const SessionReader&) { return run_comparison(); });
  });
  if (!comparison) return progress.failed(comparison.error());
  progress.end();
  const bool left_minimal = progress.note_missing_accesses(*left, "the left session");
  const bool right_minimal = progress.note_missing_accesses(*right, "the right session");
  const bool minimal = left_minimal && right_minimal;
  if (options.json) {
    Json out = to_json(*comparison, left_info, right_info);
    if (options.leave_out != LeaveOut::Nothing)
      out["left_out_steps"] = {left_out[0].first, left_out[1].first};
    put_line(text_of(out));
    return progress.exit_code();
  }
  print_line("left:  {}\nright: {}\n", escape_control_chars(options.left),
             escape_control_chars(options.right));
  print_line("{}\n", what_changed(*comparison));
  print_facts(comparison->facts);
  print_causes(comparison->causes);
  if (!minimal) print_totals(*comparison);
  print_tokens(*comparison);
  if (comparison->chosen) print_line("{}", escape_control_chars(chosen_text(*comparison)));
  if (!minimal) print_templates(*comparison);
  print_rows(*comparison, options.by, options.limit);
  for (std::size_t side = 0; side < left_out.size(); ++side) {
    const auto [steps, all] = left_out[side];
    if (steps > 0)
      print_line("{}", left_out_text(steps, all,
                                     side == 0 ? "the sums on the left" : "the sums on the right"));
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_compare_command(CLI::App& command) {
  auto options = std::make_shared<CompareOptions>();
  add_session_file(command, options->left, "left");
  add_session_file(command, options->right, "right",
                   "Session file to compare with (.ttrace). A folder or a pattern in quotes, on "
                   "either side, is a set of sessions");
  std::vector<std::pair<std::string, Axis>> axes;
  for (const Axis by : kComparedAxes) axes.emplace_back(to_text(by), by);
  command
      .add_option("--by", options->by,
                  "What each row shows: " + join(axes | std::views::keys) + " (default: op_kind)")
      ->transform(choice(axes))
      ->type_name("AXIS");
  const auto phases = enum_names(Phase::Other);
  command
      .add_option("--phase", options->phase,
                  "Phase whose steps are compared: " + join(phases | std::views::keys) +
                      " (default: generate, if both sessions generated tokens)")
      ->transform(choice(phases))
      ->type_name("PHASE");
  add_limit_option(command, options->limit, "Maximum number of rows, largest difference first");
  add_clean_option(command, options->leave_out, "all sums and times");
  CLI::Option* values = command.add_flag(
      "--values", options->values,
      "Compare the captured outputs (tt record --capture), op by op in the order of "
      "execution");
  command
      .add_option("--tolerance", options->tolerance,
                  "Relative error from which an output counts as different: the norm of the "
                  "difference, divided by the norm of the left output")
      ->needs(values)
      ->check(number({"tolerance", 0, kMaxTolerance}))
      ->capture_default_str();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example: tt compare q4.ttrace q8.ttrace --by layer\n"
      "tt compare runs/4-threads runs/8-threads");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
