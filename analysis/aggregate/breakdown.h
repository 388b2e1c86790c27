// A session summed up by one axis: where bytes, accesses and time go. And which of
// its rows are hot and which are cold.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"

namespace tt {

struct TraceSums {
  double bytes_read = 0, bytes_written = 0, reads = 0, writes = 0;
  double executions = 0;  // of ops, as trace_axis.h says
  double time_ns = 0;
  double faults = 0;  // major page faults

  double bytes() const { return bytes_read + bytes_written; }
  double accesses() const { return reads + writes; }
  // Of what is read and written; 0 without a time.
  double bytes_per_second() const { return time_ns > 0 ? bytes() * 1e9 / time_ns : 0; }
  double of(Value value) const;
  TraceSums& operator+=(const TraceSums& other);
  friend bool operator==(const TraceSums&, const TraceSums&) = default;
};

struct BreakdownRow {
  std::string name;
  std::int64_t key = 0;             // as AxisRows::keys(): a token's index, a layer's number, ...
  TraceSums all, prompt, generate;  // `all` has the other phases, too
  friend bool operator==(const BreakdownRow&, const BreakdownRow&) = default;
};

struct BreakdownQuery {
  Axis by = Axis::Layer;  // not of bytes, not Time
  TraceFilter filter{};
  std::optional<Order<Value>> order{};  // none: the rows' natural order
  PageRange page = kAllRows;
};

struct Breakdown {
  Axis by = Axis::Layer;
  std::uint64_t row_count = 0;     // without those that are all zero
  std::vector<BreakdownRow> rows;  // of the page
  // Of everything that passes the filter, on a row or not.
  BreakdownRow total;
  // The same by where the bytes lie: mapped from the model's file, or in memory.
  TraceSums disk, buffer;
  std::uint32_t damaged_steps = 0;
};

std::expected<Breakdown, TraceError> breakdown(const SessionIndex& index,
                                               const BreakdownQuery& query,
                                               const KeepGoing& keep_going = always);

// Rows by how much of `by_value` they have, hottest first: the first `hot_share` of
// them (rounded up) are hot, the last `cold_share` (rounded down) are cold.
enum class Heat : std::uint8_t { Hot, Warm, Cold };
const char* to_text(Heat);

struct HotQuery {
  Axis by = Axis::Tensor;
  Value value = Value::Accesses;
  double hot_share = 0.10, cold_share = 0.50;  // 0 to 1
  TraceFilter filter{};
  PageRange page = kAllRows;
};

struct HotCold {
  Axis by = Axis::Tensor;
  Value value = Value::Accesses;
  struct Row {
    BreakdownRow row;
    Heat heat = Heat::Warm;
    Bytes size{};  // of the tensor; 0 with another axis
  };
  std::uint64_t row_count = 0;
  std::vector<Row> rows;  // of the page
  struct Class {
    std::uint64_t rows = 0;
    Bytes size{};
    TraceSums sums;
  };
  std::array<Class, 3> classes;  // by Heat
};

std::expected<HotCold, TraceError> hot_cold(const SessionIndex& index, const HotQuery& query,
                                            const KeepGoing& keep_going = always);

}  // namespace tt
