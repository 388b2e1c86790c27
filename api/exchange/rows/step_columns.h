// The columns of the access row as integers, one step at a time; used for Arrow and Parquet.
// If a column is equal to that of the previous step, the same object is returned, so that a
// writer does not have to process its rows again.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/exchange/rows/export_columns.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// Values of one column for the rows of one step.
struct StepValues {
  // Integers in two's complement; floats as their bits; texts as their index in `words`; flags
  // as 0 or 1. 0 for null.
  std::vector<std::uint64_t> bits;
  std::vector<std::uint8_t> valid;  // for nullable columns, 0: null; else empty
  friend bool operator==(const StepValues&, const StepValues&) = default;
};
using SharedValues = std::shared_ptr<const StepValues>;

// One thread.
class StepColumns {
 public:
  struct Column {
    const AccessColumn* definition;
    std::vector<std::string> words;                         // for texts: all values, sorted
    std::unordered_map<std::string, std::uint32_t> places;  // index in `words`
    bool omitted = false;                                   // too many texts: always null
  };

  // Reads all templates once to collect their texts. `with_session` false: omits the column
  // `session`, for folders that contain it in their name.
  static std::expected<StepColumns, TraceError> make(SessionRows& rows, bool with_session);

  std::span<const Column> columns() const { return columns_; }
  // One entry per column; valid until the next call. `step` must have rows.
  std::span<const SharedValues> of(const StepRows& step);

 private:
  StepColumns() = default;
  void set(std::size_t column, StepValues& values);
  void per_step(std::size_t column, const StepRows& step);
  void per_access(std::size_t column, const StepRows& step);
  void per_row(std::size_t column, const StepRows& step, std::span<const std::uint32_t> rows);
  void compare(const StepRows& step);

  std::vector<Column> columns_;
  std::vector<SharedValues> values_;  // per column, of the current step
  // Template, rows and addresses of the current step.
  std::shared_ptr<const DerivedGraph> graph_;
  std::vector<ExportRow> rows_;
  std::vector<std::uint64_t> addresses_;
  // Whether the rows have the same accesses as those of the previous step, and which rows have
  // changed values.
  bool same_accesses_ = false;
  std::vector<std::uint32_t> changed_, all_;
  StepValues made_;  // reused buffer
};

}  // namespace tt::exchange
