// Entry point of the loadable extension. After `.load ./tensor_trace` in the sqlite3 shell, or
// Connection.load_extension() in Python, the connection has the tables of docs/sql.md for the
// session file that it has opened.
#include <memory>

#include "analysis/sql/trace_tables.h"

SQLITE_EXTENSION_INIT1

// SQLite derives the name of the entry point from the file name.
extern "C" __attribute__((visibility("default"))) int sqlite3_tensortrace_init(
    sqlite3* db, char** message, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  constexpr int kOldest = 3037000;  // the oldest that was tested
  if (sqlite3_libversion_number() < kOldest) {
    *message = sqlite3_mprintf("tensor_trace needs SQLite 3.37 or later; this is %s",
                               sqlite3_libversion());
    return SQLITE_ERROR;
  }
  try {
    return tt::sql::add_trace_tables(db, std::make_shared<tt::sql::OpenedSessions>());
  } catch (...) {
    return SQLITE_NOMEM;
  }
}
