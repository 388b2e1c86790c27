// Baseline for virtual tables: `bare (bytes)` has the given number of rows, and its value is the
// row number, which costs nothing to compute. Its speed is the upper limit for our tables.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace tt::bench {

// Runs `SELECT count(*), sum(bytes) FROM bare` on a new connection. Returns the result as CSV,
// or SQLite's error message.
std::expected<std::string, std::string> run_bare_table_query(std::int64_t rows);

}  // namespace tt::bench
