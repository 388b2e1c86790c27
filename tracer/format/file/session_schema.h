// Checks that a file has exactly the SQL schema of a session of its format version. SQLite
// evaluates parts of a schema (generated columns, CHECK constraints, indexes on expressions,
// partial indexes) when it reads or checks a table, so a schema that is not ours could take any
// time and memory. Private to tracer/format. Layout: docs/trace-format.md.
#pragma once

#include <expected>

#include "tracer/format/file/sqlite_handle.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

// Reads the schema, which has not been read before, and compares it. Nothing of it is evaluated.
// Parsing it is limited by the connection's limits (Database::open) and the number of its rows.
// Error Damaged: any difference; or an error of reading the file.
Status check_schema(const Database& db);

}  // namespace tt
