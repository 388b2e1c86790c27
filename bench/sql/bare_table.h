// What SQLite itself costs where a table's rows are called up one by one: `bare (bytes)`, a
// virtual table of as many rows as asked whose value is its row's number, and nothing to be
// found out for it. No table of ours can be faster.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace tt::bench {

// Asks `SELECT count(*), sum(bytes) FROM bare` on a connection of its own. The answer as
// CSV; the error is SQLite's.
std::expected<std::string, std::string> ask_bare_table(std::int64_t rows);

}  // namespace tt::bench
