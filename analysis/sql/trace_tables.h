// Registers all tables and views of a session with a connection. docs/sql.md documents them.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <span>
#include <string_view>

#include "analysis/sql/session_set.h"
#include "analysis/sql/session_source.h"

namespace tt::sql {

// `sources` provides the session. Returns an SQLite result code. The views are temporary, so
// nothing is written to the connection's main database.
int add_trace_tables(sqlite3* db, const std::shared_ptr<SessionSources>& sources);
// The same for all sessions of a set: each table and view has the column `session` first.
int add_trace_tables(sqlite3* db, const std::shared_ptr<SessionSet>& set);

// The names of the tables and of the views.
std::span<const std::string_view> trace_table_names();
std::span<const std::string_view> trace_view_names();

}  // namespace tt::sql
