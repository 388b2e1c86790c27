// A human-readable report on a session: findings, advice with reasons, tables and charts.
// This part computes the contents; api/report renders HTML and Markdown. Pure functions, any
// thread.
//
// Gathering the data and formatting it are separate, so that tests can format synthetic data.
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
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/token_speed.h"
#include "analysis/weights/pattern.h"
#include "analysis/weights/pin_plan.h"
#include "analysis/weights/reuse.h"
#include "analysis/weights/sequentiality.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The op time of one device.
struct DeviceTime {
  std::string name;
  double ns = 0;
  std::string slowest{};  // the op kind with the most time
  double slowest_ns = 0;
};

struct ReportData {
  SessionInfo info;
  LossCounters losses;
  std::optional<std::uint32_t> readable_steps;  // damaged file: number of steps reported on
  std::uint32_t prompt_tokens = 0, generated_tokens = 0;
  Ns prompt_time{}, generate_time{};  // total duration of the steps of the phase: evaluation alone
  TokenSpeed speed;                   // of the whole session
  std::vector<double> token_ms;  // per generated token of a step that was not learned, in order
  SessionConditions conditions;
  std::uint64_t steps = 0, left_out = 0;  // left_out: not in the times and sums
  Breakdown by_op_kind, by_component, by_layer, by_tensor;
  std::vector<CachePoint> lru, pin,
      belady;  // at the same ascending capacities; empty: no weight was read
  Bytes weights_read{}, weights_distinct{};
  // The part of both in the mapped file. The rest are copies in memory (repacked weights,
  // --no-mmap, devices), which no cache or pinning of the file can serve faster.
  Bytes mapped_read{}, mapped_distinct{};
  // The memory that was available to the process, by its facts; nullopt: unknown.
  std::optional<Bytes> available;
  // A cache of this size for the mapped weights; empty if they fit into it.
  struct MemoryBudget {
    PinPlan pins;
    CachePoint lru, belady;  // at pins.memory
  };
  MemoryBudget room;
  Determinism determinism;
  // Choices of experts for generated tokens, as in RouterUse, of all routers; 0: no experts.
  std::uint64_t experts_followed = 0, experts_turned = 0;
  Prediction prediction;
  ReadOrder read_order;             // of weights, with the default gap
  std::vector<DeviceTime> devices;  // most time first
  Validation validation;
};

// Progress callback: called with the name of each stage, such as "replaying reads". A stage
// may take a minute.
using ProgressCallback = std::function<void(const char* what)>;
inline void no_progress(const char*) {}
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

struct Advice {
  std::string advice;   // what to do, in the imperative
  std::string because;  // the reason, with its numbers
};

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
  std::vector<std::string> findings;
  std::vector<Advice> advice;
  std::vector<ReportSection> sections;
};

std::vector<std::string> findings_of(const ReportData& data);
std::vector<Advice> advice_of(const ReportData& data);
Report report_of(const ReportData& data);

}  // namespace tt
