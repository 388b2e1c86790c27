// SQL queries over a session: the body of POST .../query, and the rows as JSON, NDJSON or CSV,
// written incrementally.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/sql/query.h"
#include "api/json/json.h"
#include "api/json/problem.h"

namespace tt {

enum class QueryFormat : std::uint8_t { JsonObject, Ndjson, Csv, Parquet };
inline constexpr std::array kQueryFormats = {QueryFormat::JsonObject, QueryFormat::Ndjson,
                                             QueryFormat::Csv, QueryFormat::Parquet};
const char* to_text(QueryFormat);
const char* content_type_of(QueryFormat);

inline constexpr std::uint64_t kDefaultQueryRows = 1000;
inline constexpr std::uint64_t kMaxQueryRows = 1'000'000;
inline constexpr std::chrono::milliseconds kDefaultQueryTimeout{10'000};
inline constexpr std::chrono::milliseconds kMaxQueryTimeout{60'000};

struct QueryBody {
  std::string sql;
  std::uint64_t limit = kDefaultQueryRows;
  std::chrono::milliseconds timeout = kDefaultQueryTimeout;
  QueryFormat format = QueryFormat::JsonObject;
};
std::expected<QueryBody, Problem> parse_query_body(std::string_view body);
// The fields of QueryBody in a body that may have others.
inline constexpr std::array kQueryFields = {"sql", "limit", "timeout_ms", "format"};
std::expected<QueryBody, Problem> query_in(const Json& body);

Problem problem_of(const sql::QueryError& error);

// Appends the next part of the response to a string.
class QueryWriter {
 public:
  virtual ~QueryWriter() = default;
  virtual void begin(std::string& out) const = 0;
  // An error ends the response as one of the query does.
  virtual std::expected<void, sql::QueryError> row(std::span<const sql::QueryValue> values,
                                                   std::string& out) = 0;
  // `more`: there are rows beyond the limit. `error`: the error that ended the rows, or null
  // if complete. Returns false if the response must be aborted: the format cannot report the error,
  // or the file cannot be written.
  virtual bool end(bool more, const sql::QueryError* error, std::string& out) = 0;
};

//   json    {"columns": [...], "rows": [[...], ...], "more": false, "error": null}
//   ndjson  one object per row, by the columns' names; an error as {"error": {...}}
//   csv     a line of names, then the rows; NULL is an empty field, "" an empty text
//
// Blobs are lower-case hexadecimal. In JSON, numbers that are not finite are null. Parquet:
// exchange/columnar/query_parquet.h.
class QueryText final : public QueryWriter {
 public:
  QueryText(QueryFormat format, std::vector<std::string> columns)
      : format_(format), columns_(std::move(columns)) {}
  void begin(std::string& out) const override;
  std::expected<void, sql::QueryError> row(std::span<const sql::QueryValue> values,
                                           std::string& out) override;
  bool end(bool more, const sql::QueryError* error, std::string& out) override;

 private:
  const QueryFormat format_;
  const std::vector<std::string> columns_;
  std::uint64_t rows_ = 0;
};

// Lower-case hexadecimal.
std::string hex_of(std::span<const std::byte> bytes);

}  // namespace tt
