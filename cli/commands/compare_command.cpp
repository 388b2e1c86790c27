// tt compare LEFT RIGHT: compares two sessions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <format>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "analysis/common/format_units.h"
#include "analysis/report/comparison.h"
#include "api/json/comparison_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct CompareOptions {
  std::string left, right;
  Axis by = Axis::OpKind;
  std::size_t limit = 20;
  bool json = false;
};

std::string ratio(double left, double right) {
  return left > 0 ? std::format("{:.3f}", right / left) : "";
}

std::string count_text(double value) { return std::format("{:.0f}", value); }

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
template <class Text>
std::string difference(double left, double right, Text text) {
  return (right < left ? "-" : "+") + text(std::abs(right - left));
}

void print_facts(const std::vector<ComparedFact>& facts) {
  if (facts.empty()) return;
  TextTable table({{"fact"}, {"left"}, {"right"}});
  for (const ComparedFact& fact : facts) {
    const auto cell = [](const std::optional<std::string>& value) {
      return value ? shortened(*value) : std::string("-");
    };
    table.add({fact.name, cell(fact.left), cell(fact.right)});
  }
  table.print();
  put("\n");
}

void print_totals(const TraceSums& left, const TraceSums& right) {
  TextTable table({{""},
                   {"left", Align::Right},
                   {"right", Align::Right},
                   {"right-left", Align::Right},
                   {"right/left", Align::Right}});
  const auto row = [&](const char* name, double a, double b, const auto& text) {
    table.add({name, text(a), text(b), difference(a, b, text), ratio(a, b)});
  };
  row("ops", left.executions, right.executions, count_text);
  row("accesses", left.accesses(), right.accesses(), count_text);
  row("bytes read", left.bytes_read, right.bytes_read, format_bytes);
  row("bytes written", left.bytes_written, right.bytes_written, format_bytes);
  row("time in ops", left.time_ns, right.time_ns, format_duration);
  table.print();
}

void print_tokens(const TokenAlignment& tokens) {
  print_line("\n{} tokens on the left, {} on the right, the first {} are identical", tokens.left,
             tokens.right, tokens.common);
}

void print_templates(const std::vector<ComparedTemplate>& templates) {
  std::array<int, 4> counts{};
  for (const ComparedTemplate& row : templates) ++counts[static_cast<std::size_t>(row.match)];
  print_line("graphs: {} identical, {} with the same ops, {} only left, {} only right", counts[0],
             counts[1], counts[2], counts[3]);
}

void print_rows(const ComparedBy& by, std::size_t limit) {
  put("\n");
  TextTable table({{to_text(by.by)},
                   {"accesses left", Align::Right},
                   {"right", Align::Right},
                   {"bytes left", Align::Right},
                   {"right", Align::Right},
                   {"ratio", Align::Right},
                   {"time left", Align::Right},
                   {"right", Align::Right},
                   {"difference", Align::Right},
                   {"ratio", Align::Right}});
  const TraceSums none;
  for (std::size_t i = 0; i < by.rows.size() && i < limit; ++i) {
    const ComparedRow& row = by.rows[i];
    const TraceSums a = row.left.value_or(none), b = row.right.value_or(none);
    const auto cell = [](const auto& side, const std::string& text) {
      return side ? text : std::string("-");
    };
    table.add({row.name, cell(row.left, count_text(a.accesses())),
               cell(row.right, count_text(b.accesses())), cell(row.left, format_bytes(a.bytes())),
               cell(row.right, format_bytes(b.bytes())), ratio(a.bytes(), b.bytes()),
               cell(row.left, format_duration(a.time_ns)),
               cell(row.right, format_duration(b.time_ns)),
               difference(a.time_ns, b.time_ns, format_duration), ratio(a.time_ns, b.time_ns)});
  }
  table.print();
  if (by.rows.size() > limit) print_line("... {} more (use --limit N)", by.rows.size() - limit);
}

int run(const CompareOptions& options) {
  Progress progress("compare", progress_visibility(options.json));
  auto left = open_session(options.left), right = open_session(options.right);
  if (!left) return progress.failed(left.error());
  if (!right) return progress.failed(right.error());
  SessionInfo left_info, right_info;
  const auto run_comparison = [&] {
    return SessionIndex::build(*left, progress.start_steps("reading the left session", *left))
        .and_then([&](const SessionIndex& left_index) {
          return SessionIndex::build(*right,
                                     progress.start_steps("reading the right session", *right))
              .and_then([&](const SessionIndex& right_index) {
                constexpr PageRange kAllTokens{.from = 0,
                                               .limit = std::numeric_limits<std::uint32_t>::max()};
                left_info = left_index.info();
                right_info = right_index.info();
                return compare({.index = left_index, .reader = *left},
                               {.index = right_index, .reader = *right}, kAllTokens,
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
  if (options.json) {
    print_line("{}", text_of(to_json(*comparison, left_info, right_info)));
    return progress.exit_code();
  }
  print_facts(comparison->facts);
  print_totals(comparison->left, comparison->right);
  print_tokens(comparison->tokens);
  print_templates(comparison->templates);
  for (const ComparedBy& by : comparison->by)
    if (by.by == options.by) print_rows(by, options.limit);
  return progress.exit_code();
}

}  // namespace

RunVerb add_compare_command(CLI::App& command) {
  auto options = std::make_shared<CompareOptions>();
  add_session_file(command, options->left, "left");
  add_session_file(command, options->right, "right", "Session file to compare with (.ttrace)");
  const std::map<std::string, Axis> axes = {{"phase", Axis::Phase},
                                            {"component", Axis::Component},
                                            {"layer", Axis::Layer},
                                            {"op_kind", Axis::OpKind},
                                            {"tensor", Axis::Tensor}};
  command
      .add_option(
          "--by", options->by,
          "What each row shows: phase, component, layer, op_kind or tensor (default: op_kind)")
      ->transform(choice(axes))
      ->type_name("AXIS");
  add_limit_option(command, options->limit, "Maximum number of rows, largest difference first");
  command.add_flag("--json", options->json, "Print JSON, with rows for every axis");
  command.footer("Example: tt compare q4.ttrace q8.ttrace --by layer");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
