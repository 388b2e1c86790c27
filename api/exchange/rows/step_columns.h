// The columns of the access row as numbers, a step at a time: what Arrow and Parquet
// are made of. Most of a column is the same from step to step; then it is the same
// object, so that a writer need not look at its rows again.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/exchange/rows/access_columns.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// What a column says of the rows of one step.
struct StepValues {
  // Numbers in two's complement; of a float its bits; of a text its place in `words`; of
  // a flag 0 or 1. A null's is 0.
  std::vector<std::uint64_t> bits;
  std::vector<std::uint8_t> valid;  // of a nullable column, 0: null; else empty
  friend bool operator==(const StepValues&, const StepValues&) = default;
};
using SharedValues = std::shared_ptr<const StepValues>;

// One thread.
class StepColumns {
 public:
  struct Column {
    const AccessColumn* definition;
    std::vector<std::string> words;                         // of a text, all it may be, ascending
    std::unordered_map<std::string, std::uint32_t> places;  // in `words`
  };

  // Reads all templates once, for their texts. `with_session` false: without the
  // column `session`, as in a folder that has it in its name.
  static std::expected<StepColumns, TraceError> make(SessionRows& rows, bool with_session);

  std::span<const Column> columns() const { return columns_; }
  // Per column; valid until the next call. `step` has rows.
  std::span<const SharedValues> of(const StepRows& step);

 private:
  StepColumns() = default;
  void set(std::size_t column, StepValues& values);
  void per_step(std::size_t column, const StepRows& step);
  void per_access(std::size_t column, const StepRows& step);
  void per_row(std::size_t column, const StepRows& step, std::span<const std::uint32_t> rows);
  void compare(const StepRows& step);

  std::vector<Column> columns_;
  std::vector<SharedValues> values_;  // per column, of the step at hand
  // Of that step: its template, rows and addresses.
  std::shared_ptr<const DerivedGraph> graph_;
  std::vector<ExportRow> rows_;
  std::vector<std::uint64_t> addresses_;
  // Whether its rows are of the same accesses as those of the step before, and which of
  // them say something else.
  bool same_accesses_ = false;
  std::vector<std::uint32_t> changed_, all_;
  StepValues made_;  // reused
};

}  // namespace tt::exchange
