#include "bench/sql/bare_table.h"

#include <sqlite3.h>

#include <format>
#include <memory>
#include <string_view>

namespace tt::bench {

namespace {

struct BareTable : sqlite3_vtab {
  std::int64_t rows = 0;
};

struct BareCursor : sqlite3_vtab_cursor {
  std::int64_t row = 0;
};

BareCursor& of(sqlite3_vtab_cursor* base) { return *static_cast<BareCursor*>(base); }

int connect(sqlite3* db, void* rows, int, const char* const*, sqlite3_vtab** out, char**) {
  auto table = std::make_unique<BareTable>();
  table->rows = *static_cast<const std::int64_t*>(rows);
  const int code = sqlite3_declare_vtab(db, "CREATE TABLE bare (bytes INTEGER)");
  if (code == SQLITE_OK) *out = table.release();
  return code;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<BareTable*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }

int open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = std::make_unique<BareCursor>().release();
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete &of(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  of(cursor).row = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++of(cursor).row;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) {
  return of(cursor).row >= static_cast<const BareTable*>(cursor->pVtab)->rows;
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int) {
  sqlite3_result_int64(context, of(cursor).row);
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = of(cursor).row;
  return SQLITE_OK;
}

sqlite3_module module_functions() {
  sqlite3_module functions{};
  functions.xConnect = connect;  // without xCreate: an eponymous table, usable without CREATE
  functions.xBestIndex = best_index;
  functions.xDisconnect = disconnect;
  functions.xOpen = open;
  functions.xClose = close;
  functions.xFilter = filter;
  functions.xNext = next;
  functions.xEof = at_end;
  functions.xColumn = column;
  functions.xRowid = row_id;
  return functions;
}

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};

int answer_row(void* out, int columns, char** values, char**) {
  for (int i = 0; i < columns; ++i)
    *static_cast<std::string*>(out) += std::format("{}{}", i == 0 ? "" : ",", values[i]);
  return 0;
}

}  // namespace

std::expected<std::string, std::string> run_bare_table_query(std::int64_t rows) {
  static const sqlite3_module kFunctions = module_functions();
  sqlite3* opened = nullptr;
  int code = sqlite3_open(":memory:", &opened);
  const std::unique_ptr<sqlite3, CloseDatabase> db(opened);
  if (code == SQLITE_OK) code = sqlite3_create_module(opened, "bare", &kFunctions, &rows);
  std::string answer;
  if (code == SQLITE_OK)
    code =
        sqlite3_exec(opened, "SELECT count(*), sum(bytes) FROM bare", answer_row, &answer, nullptr);
  if (code != SQLITE_OK) return std::unexpected(std::string(sqlite3_errmsg(opened)));
  return answer + '\n';
}

}  // namespace tt::bench
