// The rows of an SQL statement as one Parquet file. SQLite has types of values and not of columns,
// so the type of a column is known after its last row: the rows are kept in memory until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/sql/query.h"
#include "api/json/query_json.h"

namespace tt::exchange {

// A column of whole numbers is INT64, of numbers DOUBLE, of blobs BYTE_ARRAY, everything else
// STRING, with numbers and blobs as in CSV. NULL is null. Compressed with LZ4. One thread.
class QueryParquet final : public QueryWriter {
 public:
  // `max_bytes`: of the kept values; more are an error, QueryError::Kind::TooLarge.
  explicit QueryParquet(std::vector<std::string> columns, std::size_t max_bytes = kMaxBytes);
  ~QueryParquet() override;

  void begin(std::string& out) const override;
  std::expected<void, sql::QueryError> row(std::span<const sql::QueryValue> values,
                                           std::string& out) override;
  bool end(bool more, const sql::QueryError* error, std::string& out) override;

  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

 private:
  class Column;
  const std::vector<std::string> names_;
  const std::size_t max_bytes_;
  std::vector<Column> columns_;
  std::size_t bytes_ = 0;
};

}  // namespace tt::exchange
