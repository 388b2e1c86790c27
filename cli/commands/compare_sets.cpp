#include "cli/commands/compare_sets.h"

#include <algorithm>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/report/set_comparison.h"
#include "api/json/result_json.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/read_sessions.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"

namespace tt::cli {
namespace {

std::expected<std::vector<SetMember>, TraceError> members_of(const SessionFiles& files,
                                                             const CompareSetsOptions& options,
                                                             Progress& progress) {
  return read_sessions(files, options.leave_out, progress,
                       [&](const std::string&, const SessionIndex& index,
                           const SessionReader& reader, const ContinueCheck& keep_going) {
                         return set_member(index, reader, options.by, keep_going);
                       });
}

std::string median_text(FigureUnit unit, const SampleMedian& of) {
  return of.samples == 0 ? "-" : figure_text(unit, of.median);
}

std::string interval_text(FigureUnit unit, const SampleMedian& of) {
  if (!of.low || !of.high) return "";
  return std::format("{} to {}", figure_text(unit, *of.low), figure_text(unit, *of.high));
}

std::string verdict_text(const ComparedFigure& row) {
  if (row.left.samples == 0) return "only right";
  if (row.right.samples == 0) return "only left";
  if (!row.different) return "no significant difference";
  return row.right.median > row.left.median ? "higher" : "lower";
}

void print_figures(const std::string& heading, const std::vector<ComparedFigure>& rows,
                   std::size_t limit) {
  if (rows.empty()) return;
  constexpr Align kRight = Align::Right;
  const auto has_interval = [&](SampleMedian ComparedFigure::* side) {
    return std::ranges::any_of(
        rows, [&](const ComparedFigure& of) { return (of.*side).low.has_value(); });
  };
  const bool left = has_interval(&ComparedFigure::left),
             right = has_interval(&ComparedFigure::right);
  std::vector<Column> columns = {heading, ">left"};
  if (left) columns.push_back({"95 % interval"});
  columns.push_back({">right"});
  if (right) columns.push_back({"95 % interval"});
  for (const char* name : {"right/left", "p"}) columns.push_back({name, kRight});
  columns.push_back({"right is"});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < rows.size() && i < limit; ++i) {
    const ComparedFigure& row = rows[i];
    std::vector<std::string> cells = {row.name, median_text(row.unit, row.left)};
    if (left) cells.push_back(interval_text(row.unit, row.left));
    cells.push_back(median_text(row.unit, row.right));
    if (right) cells.push_back(interval_text(row.unit, row.right));
    cells.push_back(row.ratio ? std::format("{:.3f}", *row.ratio) : "");
    cells.push_back(std::format("{:.2g}", row.p));
    cells.push_back(verdict_text(row));
    table.add(std::move(cells));
  }
  table.print();
  if (rows.size() > limit) print_line("... {} more (use --limit N)", rows.size() - limit);
  put("\n");
}

void print(const SetComparison& comparison, const CompareSetsOptions& options) {
  print_line("left:  {}\nright: {}\n", counted(comparison.left, "session"),
             counted(comparison.right, "session"));
  if (comparison.too_few) {
    print_line(
        "These are too few sessions for a verdict: chance alone separates sets of this size. "
        "Record at least 6 of each (tt record --repeat 6).\n");
  }
  if (!comparison.facts.empty()) {
    TextTable table({"fact", "left", "right"});
    for (const ComparedFact& fact : comparison.facts)
      table.add(fact.name, fact.left.value_or("-"), fact.right.value_or("-"));
    table.print();
    put("\n");
  }
  if (!comparison.mixed.empty()) {
    std::string names;
    for (const std::string& name : comparison.mixed) names += (names.empty() ? "" : ", ") + name;
    print_line("Not the same in all sessions of a set: {}\n", escape_control_chars(names));
  }
  print_figures("median of the sessions", comparison.figures, comparison.figures.size());
  print_figures(std::format("{}, median time per step", to_text(options.by)), comparison.rows,
                options.limit);
  print_line(
      "p: how likely sets without a difference are as far apart (Mann-Whitney). All rows are "
      "judged "
      "together: at most 5 % of those that are called higher or lower are so by chance.");
}

}  // namespace

int compare_sets(const SessionFiles& left, const SessionFiles& right,
                 const CompareSetsOptions& options, Progress& progress) {
  const auto before = members_of(left, options, progress);
  if (!before) return progress.failed(before.error());
  const auto after = members_of(right, options, progress);
  if (!after) return progress.failed(after.error());
  progress.end();
  const SetComparison comparison = tt::compare_sets(*before, *after);
  if (options.json) {
    put_line(text_of(to_json(comparison)));
  } else {
    print(comparison, options);
  }
  return progress.exit_code();
}

}  // namespace tt::cli
