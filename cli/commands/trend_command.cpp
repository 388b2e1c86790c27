// tt trend FILE...: whether the figures of a set rise or fall over days.
#include <algorithm>
#include <cstddef>
#include <format>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/sets/set_trend.h"
#include "api/json/result_json.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/read_sessions.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/enum_names.h"
#include "program/validators.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

struct TrendOptions {
  std::vector<std::string> files;
  TrendQuery query;
  std::size_t limit = 20;
  bool json = false;
};

void print_trend_group(const TrendGroup& group, TrendBy by) {
  std::string text = escape_control_chars(group.model.empty() ? "unknown model" : group.model);
  for (const auto& [name, value] : group.settings)
    text += std::format(", {} {}", name, escape_control_chars(value));
  print_line("{}: {}, {} to {} ({})", text, counted(group.sessions, "session"),
             group.points.front().at, group.points.back().at,
             counted(group.points.size(), to_text(by)));
  if (!group.mixed.empty())
    print_line("Not the same in all of them: {}", escape_control_chars(join(group.mixed)));
  if (group.disturbed > 0)
    print_line(
        "{} disturbed by other work of the machine: times and rates are left out "
        "(--disturbed: use them).",
        counted(group.disturbed, "session") + (group.disturbed == 1 ? " was" : " were"));
  if (group.disturbed_steps > 0)
    print_line("Evaluation times are without {} that other work disturbed.",
               counted(group.disturbed_steps, "step"));
}

// The last points of each figure.
void print_trend_points(const TrendGroup& group, TrendBy by, std::size_t limit) {
  const bool intervals = std::ranges::any_of(group.figures, [](const TrendFigure& figure) {
    return std::ranges::any_of(figure.points,
                               [](const SampleMedian& of) { return of.low.has_value(); });
  });
  std::vector<Column> columns = {"median of the sessions", to_text(by)};
  if (by == TrendBy::Session) columns.push_back({"start"});
  columns.push_back({">sessions"});
  columns.push_back({">median"});
  if (intervals) columns.push_back({"95 % interval"});
  TextTable table(std::move(columns));
  const std::size_t count = group.points.size(), first = count - std::min(count, limit);
  for (const TrendFigure& figure : group.figures) {
    for (std::size_t i = first; i < count; ++i) {
      const TrendPoint& point = group.points[i];
      const SampleMedian& of = figure.points[i];
      std::vector<std::string> cells = {i == first ? figure.name : ""};
      if (by == TrendBy::Session) cells.push_back(join(point.sessions));
      cells.push_back(point.at);
      cells.push_back(std::to_string(of.samples));
      cells.push_back(of.samples == 0 ? "-" : figure_text(figure.unit, of.median));
      if (intervals)
        cells.push_back(of.low && of.high
                            ? std::format("{} to {}", figure_text(figure.unit, *of.low),
                                          figure_text(figure.unit, *of.high))
                            : "");
      table.add(std::move(cells));
    }
  }
  table.print();
  if (first > 0) print_line("... {} earlier (use --limit N)", counted(first, to_text(by)));
}

void print(const SetTrend& found, std::size_t limit) {
  for (const TrendGroup& group : found.groups) {
    print_trend_group(group, found.by);
    put("\n");
    print_trend_points(group, found.by, limit);
    put("\n");
    for (const std::string& sentence : sentences_of(group, found.by)) print_line("{}", sentence);
    put("\n");
  }
  if (std::ranges::all_of(found.groups, &TrendGroup::too_few)) return;
  print_line(
      "p: how likely an arbitrary order of the same values rises or falls as often (Mann-Kendall). "
      "All figures are judged together: at most 5 % of those that are said to rise or fall do so "
      "by chance.");
}

int run(const TrendOptions& options) {
  Progress progress("trend", progress_visibility(options.json));
  const auto files = session_files(options.files);
  if (!files) return progress.failed(files.error());
  const std::size_t count = files->paths.size();
  if (count > kMaxTrendSessions)
    return progress.failed(
        std::format("these are {} sessions; a trend can have at most {}. Name fewer.", count,
                    kMaxTrendSessions));
  const auto members = read_sessions(*files, LeaveOut::Nothing, progress, trend_member);
  if (!members) return progress.failed(members.error());
  const SetTrend found = trend_over(*members, options.query);
  if (found.undated > 0)
    progress.warn(
        std::format("{} {} no start time and {} left out", counted(found.undated, "session"),
                    found.undated == 1 ? "has" : "have", found.undated == 1 ? "is" : "are"));
  progress.end();
  if (options.json) {
    put_line(text_of(to_json(found)));
  } else {
    print(found, options.limit);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_trend_command(CLI::App& command) {
  auto options = std::make_shared<TrendOptions>();
  add_session_files(command, options->files);
  command
      .add_option("--by", options->query.by,
                  "What is compared: the days (UTC) on which sessions started, with the median of "
                  "each, or the sessions (default: day)")
      ->transform(choice(enum_names(TrendBy::Session)))
      ->type_name("POINT");
  command.add_flag_callback(
      "--disturbed", [options] { options->query.leave_out = LeaveOut::Nothing; },
      "Use the times and rates of sessions that were contended, throttled or waited for the disk, "
      "too");
  add_limit_option(command, options->limit, "Maximum number of days or sessions, the last ones");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example: tt record -p 'Once upon a time' -n 16 --repeat 5 -o nightly && tt trend nightly "
      "--by session");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
