// Rows as Arrow record batches, and the schema, which Parquet files use too. Text columns are
// dictionary-encoded with the same dictionary in every batch.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type_fwd.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <vector>

#include "api/exchange/rows/session_rows.h"
#include "api/exchange/rows/step_columns.h"

namespace tt::exchange {

// The schema of the columns, with the session metadata.
std::expected<std::shared_ptr<arrow::Schema>, TraceError> arrow_schema(const SessionRows& rows,
                                                                       const StepColumns& columns);

// Collects rows column by column; memory grows with the appended rows. One thread.
class ArrowRows {
 public:
  ArrowRows(const StepColumns& columns, std::shared_ptr<arrow::Schema> schema);

  // Appends a step in the form of StepColumns.
  void append(std::span<const SharedValues> step);
  std::size_t size() const { return size_; }
  // Returns the appended rows and resets the object.
  std::expected<std::shared_ptr<arrow::RecordBatch>, TraceError> take();

 private:
  struct Column {
    const AccessColumn* definition;
    std::shared_ptr<arrow::Array> dictionary;
    std::vector<std::uint8_t> valid{};    // for nullable columns: one byte per row
    std::vector<std::uint64_t> wide{};    // 64-bit values
    std::vector<std::uint32_t> narrow{};  // other values, and dictionary indices
  };
  std::vector<Column> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::size_t size_ = 0;
};

}  // namespace tt::exchange
