// The loadable extension: `.load ./tensor_trace` in the sqlite3 shell, or
// Connection.load_extension() in Python, and the tables of docs/sql.md are there
// for the session that the connection has opened.
#include <memory>

#include "analysis/sql/trace_tables.h"

SQLITE_EXTENSION_INIT1

// Found by its name: SQLite makes it from that of the file.
extern "C" __attribute__((visibility("default"))) int sqlite3_tensortrace_init(
    sqlite3* db, char** message, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  constexpr int kOldest = 3041000;  // sqlite3_is_interrupted()
  if (sqlite3_libversion_number() < kOldest) {
    *message = sqlite3_mprintf("tensor_trace needs SQLite 3.41 or later; this is %s",
                               sqlite3_libversion());
    return SQLITE_ERROR;
  }
  try {
    return tt::sql::add_trace_tables(db, std::make_shared<tt::sql::OpenedSessions>());
  } catch (...) {
    return SQLITE_NOMEM;
  }
}
