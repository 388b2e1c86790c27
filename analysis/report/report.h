// A human-readable report on a session: findings, advice with reasons, tables and charts.
// This part computes the contents; api/report renders HTML and Markdown, with the words of
// api/text/finding_text.h. Pure functions, any
// thread.
//
// Gathering the data and formatting it are separate, so that tests can format synthetic data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/experts/experts.h"
#include "analysis/findings/finding.h"
#include "analysis/findings/session_figures.h"
#include "analysis/report/comparison.h"
#include "analysis/report/validation.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The steps of one phase, whose tables are apart from those of the others.
struct PhasePart {
  std::string name;  // "prompt"
  Phase phase = Phase::Other;
  // Where a row of a breakdown has the sums of these steps.
  TraceSums BreakdownRow::* sums = &BreakdownRow::all;
  std::uint64_t steps = 0, tokens = 0;
  Ns time{};            // total duration of the steps
  CostsByAxis costs{};  // by kComparedAxes

  double per_token(double sum) const {
    return sum / static_cast<double>(std::max<std::uint64_t>(tokens, 1));
  }
  // What a row costs in a step, divided by the tokens of a step; the time is that of the counted
  // steps, by their tokens.
  TraceSums per_token(const StepCost& row) const { return with_time(row.sums, row.token_ns); }
  TraceSums total_per_token(Axis by) const {
    return with_time(costs.at(by).total, costs.at(by).total_token_ns);
  }

 private:
  TraceSums with_time(const TraceSums& of_step, double token_ns) const {
    TraceSums out = of_step / per_step();
    out.time_ns = token_ns;
    return out;
  }
  double per_step() const {
    return steps == 0 || tokens == 0 ? 1 : static_cast<double>(tokens) / static_cast<double>(steps);
  }
};
// Prompt and generation, each if it has steps; all steps if the session has neither.
std::expected<std::vector<PhasePart>, TraceError> phase_parts(
    const SessionIndex& index, const ContinueCheck& keep_going = never_cancel);

struct ReportData : SessionFigures {
  std::vector<PhasePart> phases;
  std::vector<RouterUse> experts;       // in the steps of the last one of `phases`
  std::vector<CachePoint> pin, belady;  // at the capacities of `lru`; empty: no weight was read
  Validation validation;
};

std::expected<ReportData, TraceError> gather_report_data(
    const std::filesystem::path& file, const SessionIndex& index, const SessionReader& reader,
    const ContinueCheck& keep_going = never_cancel, const ProgressCallback& progress = no_progress);

// What a report says about a second session.
struct ReportComparison {
  SessionInfo other;
  Comparison comparison;          // the session of the report is the left one
  std::vector<PhasePart> phases;  // of the other session
};
std::expected<ReportComparison, TraceError> gather_report_comparison(
    const ComparedSession& session, const ComparedSession& other,
    const ContinueCheck& keep_going = never_cancel);

struct BarChart {
  struct Bar {
    std::string label;
    double value = 0;  // not negative
    std::string text;  // the formatted value
  };
  std::string title;
  std::vector<Bar> bars;
};
// A line chart; both axes begin at 0.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x ascending
  };
  std::string title, x_label, y_label;
  std::vector<Line> lines;
};
using Chart = std::variant<BarChart, LineChart>;

struct ReportColumn {
  std::string name;
  bool right = false;  // right-aligned: a number
};
struct ReportSection {
  std::string title;
  std::vector<std::string> text;
  std::vector<Chart> charts;
  std::vector<ReportColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Report {
  std::string title, subtitle;
  // With which session it is compared, if any.
  struct Compared {
    std::string with;  // its title
    Comparison comparison;
  };
  std::optional<Compared> compared;
  std::vector<Finding> findings;
  std::vector<Advice> advice;
  std::vector<ReportSection> sections;
};

std::vector<Advice> advice_of(const ReportData& data);
// `compared`: with another session; null: with none.
Report report_of(const ReportData& data, const ReportComparison* compared = nullptr);

}  // namespace tt
