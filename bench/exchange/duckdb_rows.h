// Whether DuckDB, reading a session's Parquet, and our SQL say the same of every
// access: all columns of all rows, in order.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>

namespace tt::bench {

struct RowAgreement {
  std::uint64_t rows = 0;       // that were the same, up to the first that is not
  std::uint64_t columns = 0;    // of each
  std::uint64_t bytes = 0;      // of their text
  std::string difference = {};  // the first: row, column, what either says; empty: none
};

// `folder` gets the Parquet, which is removed afterwards. The error: what could not be
// read, written or started. Needs `duckdb`.
std::expected<RowAgreement, std::string> compare_with_duckdb(const std::filesystem::path& session,
                                                             const std::filesystem::path& folder);

}  // namespace tt::bench
