// Replacements for SQLite functions whose cost is the product of the lengths of two
// arguments. A single call cannot be interrupted, so one of the lengths is limited.
#pragma once

#include <sqlite3.h>

namespace tt::sql {

inline constexpr int kMaxPatternBytes = 1000;

// Registers instr(), replace(), and trim(), ltrim() and rtrim() with two arguments, overriding
// the built-in functions. Returns an SQLite result code.
int add_bounded_functions(sqlite3* db);

}  // namespace tt::sql
