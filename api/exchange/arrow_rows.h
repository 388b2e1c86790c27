// Rows as Arrow record batches: what Parquet and Arrow files are made of. Texts are
// dictionaries, the same ones in every batch.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/exchange/access_columns.h"
#include "api/exchange/session_rows.h"

namespace tt::exchange {

// Column by column, in memory for as many rows as are appended. One thread.
class ArrowRows {
 public:
  // Reads all templates once, for their texts. `with_session` false: without the
  // column `session`, as in a folder that has it in its name.
  static std::expected<ArrowRows, TraceError> make(SessionRows& rows, bool with_session);

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  void append(const StepRows& step);
  std::size_t size() const { return size_; }
  // What was appended; empty again afterwards.
  std::expected<std::shared_ptr<arrow::RecordBatch>, TraceError> take();

 private:
  struct Column {
    const AccessColumn* definition;
    std::vector<std::uint8_t> valid;                        // of a nullable one, a byte per row
    std::vector<std::uint64_t> wide;                        // 64-bit values
    std::vector<std::uint32_t> narrow;                      // others, and places in words
    std::unordered_map<std::string, std::uint32_t> places;  // of a text in `words`
    std::vector<std::string> words;
    std::shared_ptr<arrow::Array> dictionary;
    // Per access of the template at hand, with PerAccess.
    std::vector<std::uint64_t> constants;
    std::vector<std::uint8_t> constants_valid;
  };
  ArrowRows() = default;
  void prepare(const RowScope& scope);
  static void append(Column& column, const StepRows& step);
  static std::uint64_t bits_of(Column& column, const Cell& cell);

  std::vector<Column> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<const DerivedGraph> prepared_;
  std::size_t size_ = 0;
};

// What Arrow says went wrong. An error that a sink gave comes out as it went in.
TraceError trace_error(const arrow::Status& status);

}  // namespace tt::exchange
