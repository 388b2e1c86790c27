// Rows as Arrow record batches: what Arrow files are made of, and the schema, which
// Parquet files have, too. Texts are dictionaries, the same ones in every batch.
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

// Of the columns, with the session's facts.
std::expected<std::shared_ptr<arrow::Schema>, TraceError> arrow_schema(const SessionRows& rows,
                                                                       const StepColumns& columns);

// Column by column, in memory for as many rows as are appended. One thread.
class ArrowRows {
 public:
  ArrowRows(const StepColumns& columns, std::shared_ptr<arrow::Schema> schema);

  // A step as StepColumns has it.
  void append(std::span<const SharedValues> step);
  std::size_t size() const { return size_; }
  // What was appended; empty again afterwards.
  std::expected<std::shared_ptr<arrow::RecordBatch>, TraceError> take();

 private:
  struct Column {
    const AccessColumn* definition;
    std::shared_ptr<arrow::Array> dictionary;
    std::vector<std::uint8_t> valid{};    // of a nullable one, a byte per row
    std::vector<std::uint64_t> wide{};    // 64-bit values
    std::vector<std::uint32_t> narrow{};  // others, and places in the dictionary
  };
  std::vector<Column> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::size_t size_ = 0;
};

}  // namespace tt::exchange
