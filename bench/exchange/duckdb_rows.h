// Compares the accesses of a session's Parquet export, read by DuckDB, with our SQL: all columns
// of all rows, in order.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>

namespace tt::bench {

struct RowAgreement {
  std::uint64_t rows = 0;       // equal rows before the first difference
  std::uint64_t columns = 0;    // per row
  std::uint64_t bytes = 0;      // CSV text read from DuckDB
  std::string difference = {};  // first difference: row, column, both values; empty: none
};

// Writes the Parquet file to `folder` and removes it afterwards. The error names what could not
// be read, written or started. Needs `duckdb` on PATH.
std::expected<RowAgreement, std::string> compare_with_duckdb(const std::filesystem::path& session,
                                                             const std::filesystem::path& folder);

}  // namespace tt::bench
