#include "cli/commands/bench_model_output.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <string>

#include "analysis/common/format_units.h"
#include "api/json/analysis/bench_json.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"

namespace tt::cli {

namespace {

void print_table(const TextTable& table, BenchFormat format) {
  if (format == BenchFormat::Markdown) return table.print_markdown();
  table.print();
}

// "+1.2 %": how much longer.
std::string change_text(double ratio) { return std::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string interval_text(const SpeedChange& change) {
  return change.low ? std::format("{} to {}", change_text(*change.low), change_text(*change.high))
                    : "too few rounds";
}

std::string speed_text(double ns, std::uint32_t tokens) {
  if (ns <= 0) return "-";
  const double speed = evaluation_speed(ns, tokens);
  return speed < 100 ? std::format("{:.2f}", speed) : std::format("{:.1f}", speed);
}

void print_tests(const BenchResult& result, BenchFormat format) {
  TextTable table({"test", ">t/s", ">p5", ">p95", ">noise", ">t/s recorded", ">recording takes",
                   ">99 % interval"});
  for (const SpeedTest& test : result.tests) {
    const SampleSpread times = sample_spread(test.samples_ns());
    const SpeedChange cost = test.recording_cost();
    table.add(test_name(test.n_prompt, test.n_gen), speed_text(times.median, test.tokens()),
              speed_text(times.p95, test.tokens()), speed_text(times.p5, test.tokens()),
              std::format("{:.1f} %", 100 * test.noise()),
              speed_text(sample_spread(test.recorded_ns).median, test.tokens()),
              change_text(cost.ratio), interval_text(cost));
  }
  print_table(table, format);
}

void print_ops(const SpeedTest& test, BenchFormat format) {
  struct Row {
    const SpeedOp* op;
    SampleSpread ns;
  };
  std::vector<Row> rows;
  double all = 0;
  for (const SpeedOp& op : test.ops) {
    rows.push_back({.op = &op, .ns = sample_spread(op.ns)});
    all += rows.back().ns.median;
  }
  if (rows.empty()) return;
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const Row& row) { return row.ns.median; });
  const std::string heading = "op, " + test_name(test.n_prompt, test.n_gen);
  TextTable table({heading, ">time per token", ">p5", ">p95", ">share", ">count per run"});
  const double tokens = std::max(test.tokens(), 1U);
  for (const auto& [op, ns] : rows) {
    table.add(op->op, format_duration(ns.median / tokens), format_duration(ns.p5 / tokens),
              format_duration(ns.p95 / tokens), format_percent(ns.median, all),
              std::format("{:.0f}", op->count));
  }
  put("\n");
  print_table(table, format);
}

std::vector<Json> rows_of(const std::vector<BenchResult>& results) {
  std::vector<Json> rows;
  for (const BenchResult& result : results) {
    Json facts = result.facts;
    if (!result.name.empty()) facts["configuration"] = result.name;
    for (const SpeedTest& test : result.tests)
      rows.push_back(bench_row_json(facts, test, result.test_time, result.machine_word));
  }
  return rows;
}

// "MUL_MAT +5.1 %", for op kinds with a verdict.
std::string ops_text(const ComparedTest& test) {
  std::string text;
  for (const ComparedOp& op : test.ops) {
    if (!op.change || op.change->verdict == SpeedVerdict::Equal) continue;
    text += std::format(
        "{}{} {} ({} per token)", text.empty() ? "" : ", ", op.op, change_text(op.change->ratio),
        (op.added_ns() < 0 ? "-" : "+") +
            format_duration(std::abs(op.added_ns()) / std::max(test.n_prompt + test.n_gen, 1U)));
  }
  return text;
}

}  // namespace

void print_results(const std::vector<BenchResult>& results, BenchFormat format) {
  switch (format) {
    case BenchFormat::Csv:
      return put(bench_csv(rows_of(results)));
    case BenchFormat::Sql:
      return put(bench_sql(rows_of(results)));
    case BenchFormat::Json: {
      Json rows = Json::array();
      for (Json& row : rows_of(results)) rows.push_back(std::move(row));
      return put_line(text_of(rows));
    }
    case BenchFormat::JsonLines:
      for (const Json& row : rows_of(results)) put_line(text_of(row));
      return;
    case BenchFormat::Table:
    case BenchFormat::Markdown:
      break;
  }
  for (const BenchResult& result : results) {
    if (&result != results.data()) put("\n");
    if (!result.name.empty()) print_line("configuration  {}\n", result.name);
    print_line("model    {}", result.model);
    if (!result.machine.empty()) print_line("machine  {}", result.machine);
    put("\n");
    print_tests(result, format);
    for (const SpeedTest& test : result.tests) print_ops(test, format);
  }
}

void print_comparison(const std::vector<ComparedTest>& tests, const std::string& before,
                      const std::string& after, BenchFormat format) {
  if (format == BenchFormat::Json) {
    Json rows = Json::array();
    for (const ComparedTest& test : tests) rows.push_back(to_json(test));
    return put_line(text_of(rows));
  }
  print_line("before   {}\nafter    {}\n", before, after);
  TextTable table({"test", ">t/s before", ">t/s after", ">time", ">99 % interval", ">noise",
                   "verdict", "op kinds"});
  for (const ComparedTest& test : tests) {
    const std::uint32_t tokens = test.n_prompt + test.n_gen;
    table.add(test_name(test.n_prompt, test.n_gen), speed_text(test.before_ns, tokens),
              speed_text(test.after_ns, tokens), change_text(test.change.ratio),
              interval_text(test.change), std::format("{:.1f} %", 100 * test.change.noise),
              to_text(test.change.verdict), ops_text(test));
  }
  print_table(table, format);
}

void print_results_and_comparison(const std::vector<BenchResult>& results,
                                  const std::vector<ComparedTest>& tests, BenchFormat format) {
  if (format == BenchFormat::Json) {
    Json json{{"tests", Json::array()}, {"comparison", Json::array()}};
    for (Json& row : rows_of(results)) json["tests"].push_back(std::move(row));
    for (const ComparedTest& test : tests) json["comparison"].push_back(to_json(test));
    return put_line(text_of(json));
  }
  print_results(results, format);
  if (format != BenchFormat::Table && format != BenchFormat::Markdown) return;
  put("\n");
  print_comparison(tests, results.at(0).name, results.at(1).name, format);
}

}  // namespace tt::cli
