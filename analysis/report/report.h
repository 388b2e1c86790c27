// A human-readable report on a session: findings, advice with reasons, tables and charts.
// This part computes the contents; api/report renders HTML and Markdown, with the words of
// api/text/finding_text.h. Pure functions, any
// thread.
//
// Gathering the data and formatting it are separate, so that tests can format synthetic data.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/findings/finding.h"
#include "analysis/findings/session_figures.h"
#include "analysis/report/validation.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct ReportData : SessionFigures {
  std::vector<CachePoint> pin, belady;  // at the capacities of `lru`; empty: no weight was read
  Validation validation;
};

std::expected<ReportData, TraceError> gather_report_data(
    const std::filesystem::path& file, const SessionIndex& index, const SessionReader& reader,
    const ContinueCheck& keep_going = never_cancel, const ProgressCallback& progress = no_progress);

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
  std::vector<Finding> findings;
  std::vector<Advice> advice;
  std::vector<ReportSection> sections;
};

std::vector<Advice> advice_of(const ReportData& data);
Report report_of(const ReportData& data);

}  // namespace tt
