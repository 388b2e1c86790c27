// Totals of a session grouped by one axis: bytes, accesses and time per row. Also
// classifies the rows as hot, warm or cold.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/aggregate/step_times.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

struct TraceSums {
  double bytes_read = 0, bytes_written = 0, reads = 0, writes = 0;
  double executions = 0;  // of ops, see trace_axis.h
  double time_ns = 0;
  double faults = 0;  // major page faults

  double bytes() const { return bytes_read + bytes_written; }
  double accesses() const { return reads + writes; }
  // Bytes read and written per second; 0 if there is no time.
  double bytes_per_second() const { return time_ns > 0 ? bytes() * 1e9 / time_ns : 0; }
  double of(Value value) const;
  TraceSums& operator+=(const TraceSums& other);
  TraceSums operator/(double by) const;
  friend bool operator==(const TraceSums&, const TraceSums&) = default;
};

struct BreakdownRow {
  std::string name;
  std::int64_t key = 0;             // as AxisRows::keys(): token index, layer number, ...
  TraceSums all, prompt, generate;  // `all` includes the other phases
  std::optional<StepTimes> step;    // of one step; only on request
  friend bool operator==(const BreakdownRow&, const BreakdownRow&) = default;
};

struct BreakdownQuery {
  Axis by = Axis::Layer;  // not a byte axis, not Time
  TraceFilter filter{};
  // By BreakdownRow::all; by time with `step_times`, by the median of BreakdownRow::step. None:
  // natural order.
  std::optional<Order<Value>> order{};
  PageRange page = kAllRows;
  bool step_times = false;  // whether to compute BreakdownRow::step; for axes that are not temporal
};

struct Breakdown {
  Axis by = Axis::Layer;
  std::uint64_t row_count = 0;     // rows that are not all zero
  std::vector<BreakdownRow> rows;  // rows of the page
  // Total of everything that passes the filter, including what maps to no row.
  BreakdownRow total;
  // The same total by memory source: mapped from the model file, or other memory.
  TraceSums disk, buffer;
  std::uint32_t damaged_steps = 0;
  std::uint64_t left_out_steps = 0;   // of the index; in no sum
  std::optional<TimedSteps> times{};  // those of the rows' step times; none: they have none
};

std::expected<Breakdown, TraceError> breakdown(const SessionIndex& index,
                                               const BreakdownQuery& query,
                                               const ContinueCheck& keep_going = never_cancel);

std::vector<std::int64_t> keys_of(std::span<const BreakdownRow> rows);

// The number of steps of a phase with accesses that pass the filter; a step of which a part passes
// it counts as this part.
double counted_share(const SessionIndex& index, TraceFilter filter, Phase phase);
// Sets `step` of rows of an axis that is not temporal: of the timed_steps() of the filter. Returns
// that of everything that passes the filter, without a rate.
std::expected<std::optional<StepTimes>, TraceError> add_step_times(
    const SessionIndex& index, Axis by, const TraceFilter& filter, std::span<BreakdownRow> rows,
    const ContinueCheck& keep_going = never_cancel);

// Rows are sorted by `value`, descending. The first `hot_share` of the rows (rounded up) is
// hot, the last `cold_share` (rounded down) is cold. Rows with equal values are in the same
// class: a group that one of the limits would divide is warm.
enum class Heat : std::uint8_t { Hot, Warm, Cold };
const char* to_text(Heat);

// What a question says if nothing of the session passes its filter.
inline constexpr const char* kNothingMatches =
    "No access of the session matches these conditions. Remove one of them, or list what the "
    "session has: tt hot, tt hot --by source, tt hot --by layer.";

// Rows of tensors are weights, unless the filter says which tensors: by kind, source or name. Masks
// and positions are read in every op and would be above all weights.
struct HotQuery {
  Axis by = Axis::Tensor;
  // None: accesses, unless more than half of the rows have equally many; then bytes touched;
  // if these are equal, too, time.
  std::optional<Value> value{};
  double hot_share = 0.10, cold_share = 0.50;  // 0 to 1
  TraceFilter filter{};
  PageRange page = kAllRows;
  // As BreakdownQuery::step_times. Rows that are ranked by time always have them, because they are
  // ranked by the median of one phase, except on temporal axes.
  bool step_times = false;

  // Per cent, or the default: 10 and 50, but at most what the other leaves.
  void set_shares(std::optional<double> hot_percent, std::optional<double> cold_percent) {
    hot_share = hot_percent.value_or(std::min(10.0, 100 - cold_percent.value_or(0))) / 100;
    cold_share = cold_percent.value_or(std::min(50.0, 100 - hot_percent.value_or(0))) / 100;
  }
};

struct HotCold {
  Axis by = Axis::Tensor;
  Value value = Value::Accesses;
  struct Row {
    BreakdownRow row;
    Heat heat = Heat::Warm;
    Bytes size{};  // of the tensor; 0 for other axes
  };
  std::uint64_t row_count = 0;
  std::vector<Row> rows;  // rows of the page
  struct Class {
    std::uint64_t rows = 0;
    Bytes size{};
    TraceSums sums;
    Ns step{};  // sum of the medians of its rows, if they are ranked by them
  };
  std::array<Class, 3> classes;      // indexed by Heat
  std::uint64_t left_out_steps = 0;  // as in Breakdown
  std::optional<TensorKind> kind;    // of the tensors that are rows; none: any
  // If the rows are weights because the filter does not say which tensors: sums of the others.
  std::map<TensorKind, TraceSums> other_kinds;
  // A sentence for each surprise: which equal values decided the value that rows are sorted
  // by, and which groups of equal rows a limit would have divided. Empty: none.
  std::string note;
  std::optional<TimedSteps> times;  // those of the rows' step times; none: they have none
};

std::expected<HotCold, TraceError> hot_cold(const SessionIndex& index, const HotQuery& query,
                                            const ContinueCheck& keep_going = never_cancel);

Fields<TraceSums> fields_of(const TraceSums*);
Fields<BreakdownRow> fields_of(const BreakdownRow*);
Fields<Breakdown> fields_of(const Breakdown*);
Fields<HotCold> fields_of(const HotCold*);

}  // namespace tt
