// SQLite's functions that compare every place of one text with all of another, for
// short others only: within one call nobody can stop them.
#pragma once

#include <sqlite3.h>

namespace tt::sql {

inline constexpr int kMostSearchedBytes = 1000;

// instr(), replace(), and trim(), ltrim(), rtrim() with a list of characters, in the
// place of SQLite's own. Its result code.
int add_bounded_functions(sqlite3* db);

}  // namespace tt::sql
