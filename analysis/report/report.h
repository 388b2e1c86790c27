// A session told to people: what was recorded, findings in sentences with their
// figures, advice with its reason, tables and charts. Values only: api/report
// makes HTML and Markdown of it. Pure functions, any thread.
//
// The figures are gathered first and told second, so that a test can tell made-up
// ones.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"
#include "analysis/report/validation.h"
#include "analysis/weights/pattern.h"
#include "analysis/weights/pin_plan.h"
#include "analysis/weights/reuse.h"
#include "analysis/weights/sequentiality.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// What ran ops of a session.
struct DeviceTime {
  std::string name;
  double ns = 0;
  std::string slowest{};  // the kind of op that took most of it
  double slowest_ns = 0;
};

struct ReportFigures {
  SessionInfo info;
  LossCounters losses;
  std::optional<std::uint32_t> whole_steps;  // of a damaged file, what the rest is about
  std::uint32_t prompt_tokens = 0, generated_tokens = 0;
  Ns prompt_time{}, generate_time{};  // of the steps of these phases
  std::vector<double> token_ms;       // per generated token, in order
  Breakdown by_op_kind, by_component, by_layer, by_tensor;
  std::vector<CachePoint> lru, pin,
      belady;  // at the same capacities, ascending; empty: no weight was read
  Bytes weights_read{}, weights_distinct{};
  // In the memory of the machine, or, where all weights that were read fit into it, in
  // half of what these need.
  struct Room {
    PinPlan pins;
    CachePoint lru, belady;  // at pins.memory
  };
  Room room;
  Determinism determinism;
  Prediction prediction;
  ReadOrder read_order;             // of weights, with the usual gap
  std::vector<DeviceTime> devices;  // the busiest first
  Validation validation;
};

// Told what is gathered next, "replaying reads": it may take a minute.
using Telling = std::function<void(const char* what)>;
inline void to_nobody(const char*) {}
std::expected<ReportFigures, TraceError> report_figures(const std::filesystem::path& file,
                                                        const SessionIndex& index,
                                                        const SessionReader& reader,
                                                        const KeepGoing& keep_going = always,
                                                        const Telling& tell = to_nobody);

struct BarChart {
  struct Bar {
    std::string label;
    double value = 0;  // not negative
    std::string text;  // the value as people read it
  };
  std::string title;
  std::vector<Bar> bars;
};
// Lines over two axes that begin at 0.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x ascending
  };
  std::string title, x_label, y_label;
  std::vector<Line> lines;
};
using Chart = std::variant<BarChart, LineChart>;

struct Advice {
  std::string advice;   // what to do, in the imperative
  std::string because;  // the evidence, with its figures
};

struct ReportColumn {
  std::string name;
  bool right = false;  // a figure
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
  std::vector<std::string> findings;
  std::vector<Advice> advice;
  std::vector<ReportSection> sections;
};

std::vector<std::string> findings_of(const ReportFigures& figures);
std::vector<Advice> advice_of(const ReportFigures& figures);
Report report_of(const ReportFigures& figures);

}  // namespace tt
