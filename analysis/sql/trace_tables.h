// All tables and views of a session, added to a connection; docs/sql.md describes
// them. `sources` says which session they are about.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <span>
#include <string_view>

#include "analysis/sql/session_source.h"

namespace tt::sql {

// SQLite's result code. The views are temporary ones: nothing is written into the
// connection's main database.
int add_trace_tables(sqlite3* db, const std::shared_ptr<SessionSources>& sources);

// Names of the tables, then of the views.
std::span<const std::string_view> trace_table_names();
std::span<const std::string_view> trace_view_names();

}  // namespace tt::sql
