// The SQLite module functions for a Table. best_index() passes the plan of a scan to filter()
// as idxStr: the mask of used columns in hexadecimal, then column and operator per argument,
// with * for a list (IN): "3f 0= 2<".
#include "analysis/sql/virtual_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>
#include <new>
#include <ranges>

#include "analysis/sql/session_set.h"
#include "analysis/sql/session_source.h"

namespace tt::sql {

namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

struct Module {
  Table table;
  std::shared_ptr<SessionSources> sources;
  std::shared_ptr<SessionSet> set;  // instead of `sources`
};

struct VirtualTable : sqlite3_vtab {
  const Table* table = nullptr;
  std::shared_ptr<SessionSource> source;
  std::shared_ptr<SessionSet> set;  // instead of `source`
  std::size_t sessions() const { return set != nullptr ? set->names().size() : 1; }
  bool is_session(int column) const { return set != nullptr && column == 0; }
};

struct VirtualCursor : sqlite3_vtab_cursor {
  std::unique_ptr<Cursor> cursor;
};

const Table& table_of(sqlite3_vtab* base) { return *static_cast<VirtualTable*>(base)->table; }
Cursor& cursor_of(sqlite3_vtab_cursor* base) { return *static_cast<VirtualCursor*>(base)->cursor; }

int code_of(const TraceError& error) {
  switch (error.kind) {
    case TraceError::Kind::Cancelled:
      return SQLITE_INTERRUPT;
    case TraceError::Kind::Damaged:
      return SQLITE_CORRUPT_VTAB;
    default:
      return SQLITE_ERROR;
  }
}

int report(char** message, const TraceError& error) {
  sqlite3_free(*message);
  *message = sqlite3_mprintf("%s", error.message.c_str());
  return code_of(error);
}

// Exceptions must not propagate through SQLite; they become result codes.
template <class Body>
int guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception&) {
    return SQLITE_ERROR;
  }
}

std::string declaration_of(const Table& table) {
  std::string text = "CREATE TABLE x(";
  for (const Field& field : table.fields)
    text += std::format("{}{} {}", text.ends_with('(') ? "" : ", ", field.name, field.type);
  return text + ")";
}

// Either as an eponymous table (`FROM access`: the main database), or created with
//   CREATE VIRTUAL TABLE temp.b_access USING access(b)
// for an attached database. None is ever written to a session.
int connect(sqlite3* db, void* aux, int argc, const char* const* argv, sqlite3_vtab** out,
            char** message) {
  return guarded([&] {
    const auto& module = *static_cast<const Module*>(aux);
    const std::string_view database = argv[1], name = argv[2];
    const bool plain = argc == 3 && name == module.table.name;
    if (!plain && (argc != 4 || database != "temp")) {
      *message = sqlite3_mprintf(
          "to query an attached session, use CREATE VIRTUAL TABLE temp.name USING "
          "%s(schema)",
          module.table.name);
      return SQLITE_ERROR;
    }
    auto table = std::make_unique<VirtualTable>();
    table->table = &module.table;
    table->set = module.set;
    if (module.set == nullptr) {
      auto source = module.sources->of(db, argc == 4 ? argv[3] : "main");
      if (!source) return report(message, source.error());
      if (const auto opened = (*source)->open(); !opened) return report(message, opened.error());
      table->source = *std::move(source);
    }
    if (const int code = sqlite3_declare_vtab(db, declaration_of(module.table).c_str());
        code != SQLITE_OK)
      return code;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *out = table.release();
    return SQLITE_OK;
  });
}

int disconnect(sqlite3_vtab* base) {
  delete static_cast<VirtualTable*>(base);
  return SQLITE_OK;
}

char sign_of(int op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
      return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
      return ']';
    case SQLITE_INDEX_CONSTRAINT_LT:
      return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
      return '[';
    default:
      return 0;
  }
}

// Rows are sorted by the first columns, ascending, and by rowid.
bool comes_ordered(const Table& table, const sqlite3_index_info& info) {
  if (info.nOrderBy == 0) return false;
  if (info.nOrderBy == 1 && info.aOrderBy[0].iColumn == -1) return !info.aOrderBy[0].desc;
  for (int i = 0; i < info.nOrderBy; ++i) {
    if (info.aOrderBy[i].desc || info.aOrderBy[i].iColumn != i ||
        std::cmp_greater_equal(i, table.ordered_by))
      return false;
  }
  return true;
}

int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  return guarded([&] {
    const Table& table = table_of(base);
    const auto& of_sessions = *static_cast<VirtualTable*>(base);
    const auto sessions = static_cast<double>(of_sessions.sessions());
    std::string plan = std::format("{:x}", static_cast<std::uint64_t>(info->colUsed));
    double rows = table.rows * sessions, read = rows;
    int arguments = 0;
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& constraint = info->aConstraint[i];
      const char sign = sign_of(constraint.op);
      if (!constraint.usable || constraint.iColumn < 0 || sign == 0) continue;
      const Field& field = table.fields[static_cast<std::size_t>(constraint.iColumn)];
      if (field.pushdown == Pushdown::None) continue;
      if (field.is_text() &&
          (sign != '=' || std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY"))
        continue;
      // Take an IN list as one argument; otherwise there is one scan per value. A host of the
      // extension may be older than the function.
      constexpr int kHasLists = 3038000;
      const bool list =
          sqlite3_libversion_number() >= kHasLists && sqlite3_vtab_in(info, i, 1) != 0;
      info->aConstraintUsage[i].argvIndex = ++arguments;
      plan += std::format(" {}{}{}", constraint.iColumn, sign, list ? "*" : "");
      const double chunks = of_sessions.is_session(constraint.iColumn) ? sessions
                            : field.pushdown == Pushdown::Chunks       ? table.chunks
                                                                       : 0;
      const double share = sign != '=' ? 0.25 : chunks > 1 ? 1 / chunks : 0.01;
      rows *= share;
      if (field.pushdown == Pushdown::Chunks) read *= share;
    }
    info->idxStr = sqlite3_mprintf("%s", plan.c_str());
    if (info->idxStr == nullptr) return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->orderByConsumed = comes_ordered(table, *info);
    // A skipped row costs little, a chunk that is read costs more.
    info->estimatedCost = rows + 0.1 * read + 100;
    info->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, rows));
    return SQLITE_OK;
  });
}

int open(sqlite3_vtab* base, sqlite3_vtab_cursor** out) {
  return guarded([&] {
    auto& table = *static_cast<VirtualTable*>(base);
    auto cursor = std::make_unique<VirtualCursor>();
    cursor->cursor = table.set != nullptr ? open_set_cursor(*table.table, *table.set)
                                          : table.table->open(*table.source);
    *out = cursor.release();
    return SQLITE_OK;
  });
}

int close(sqlite3_vtab_cursor* base) {
  delete static_cast<VirtualCursor*>(base);
  return SQLITE_OK;
}

int op_of(char sign) {
  switch (sign) {
    case '=':
      return SQLITE_INDEX_CONSTRAINT_EQ;
    case '>':
      return SQLITE_INDEX_CONSTRAINT_GT;
    case ']':
      return SQLITE_INDEX_CONSTRAINT_GE;
    case '<':
      return SQLITE_INDEX_CONSTRAINT_LT;
    default:
      return SQLITE_INDEX_CONSTRAINT_LE;
  }
}

constexpr int kOneOf = -1;  // for narrow(): the argument is a list

int to_sqlite_code(sqlite3_vtab* table, const Status& done) {
  return done ? SQLITE_OK : report(&table->zErrMsg, done.error());
}

int filter(sqlite3_vtab_cursor* base, int, const char* plan, int argc, sqlite3_value** argv) {
  return guarded([&] {
    Conditions conditions(table_of(base->pVtab).fields);
    const char* end = plan + std::string_view(plan).size();
    std::uint64_t used = 0;
    const char* at = std::from_chars(plan, end, used, 16).ptr;
    conditions.use(used);
    for (int i = 0; i < argc; ++i) {
      std::size_t column = 0;
      at = std::from_chars(at + 1, end, column).ptr;
      int op = op_of(*at++);
      if (at != end && *at == '*') {
        op = kOneOf;
        ++at;
      }
      conditions.narrow(column, op, argv[i]);
    }
    return to_sqlite_code(base->pVtab, cursor_of(base).start(conditions));
  });
}

int next(sqlite3_vtab_cursor* base) {
  return guarded([&] { return to_sqlite_code(base->pVtab, cursor_of(base).next()); });
}

int at_end(sqlite3_vtab_cursor* base) { return cursor_of(base).at_end(); }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int i) {
  return guarded([&] {
    Output out(context);
    cursor_of(base).value(static_cast<std::size_t>(i), out);
    return SQLITE_OK;
  });
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  return guarded([&] {
    const auto id = cursor_of(base).row_id();
    if (!id) return report(&base->pVtab->zErrMsg, id.error());
    *out = *id;
    return SQLITE_OK;
  });
}

sqlite3_module module_functions() {
  sqlite3_module functions{};
  functions.iVersion = 1;
  functions.xCreate = connect;  // same as xConnect: the table is eponymous
  functions.xConnect = connect;
  functions.xBestIndex = best_index;
  functions.xDisconnect = disconnect;
  functions.xDestroy = disconnect;
  functions.xOpen = open;
  functions.xClose = close;
  functions.xFilter = filter;
  functions.xNext = next;
  functions.xEof = at_end;
  functions.xColumn = column;
  functions.xRowid = row_id;
  return functions;
}

int add_module(sqlite3* db, Module of_table) {
  static const sqlite3_module kFunctions = module_functions();
  auto module = std::make_unique<Module>(std::move(of_table));
  const char* name = module->table.name;
  // SQLite calls the destructor even if it fails.
  return sqlite3_create_module_v2(db, name, &kFunctions, module.release(),
                                  [](void* aux) { delete static_cast<Module*>(aux); });
}

// Saturating conversions.
std::int64_t ceiling(double v) {
  if (v >= 0x1p63) return kMax;
  return v <= -0x1p63 ? kMin : static_cast<std::int64_t>(std::ceil(v));
}
std::int64_t floor(double v) {
  if (v >= 0x1p63) return kMax;
  return v <= -0x1p63 ? kMin : static_cast<std::int64_t>(std::floor(v));
}

// Narrows the range by an integer or real value. Values that SQLite would convert before the
// comparison (text and number) are ignored.
void narrow_to(ColumnConstraint& constraint, int op, sqlite3_value* value) {
  std::int64_t least = kMin, most = kMax;
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      least = most = sqlite3_value_int64(value);
      if (op == SQLITE_INDEX_CONSTRAINT_GT && least < kMax) ++least;
      if (op == SQLITE_INDEX_CONSTRAINT_LT && most > kMin) --most;
      break;
    case SQLITE_FLOAT:
      least = ceiling(sqlite3_value_double(value));
      most = floor(sqlite3_value_double(value));
      break;
    default:
      return;
  }
  if (op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_GE ||
      op == SQLITE_INDEX_CONSTRAINT_GT)
    constraint.from = std::max(constraint.from, least);
  if (op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_LE ||
      op == SQLITE_INDEX_CONSTRAINT_LT)
    constraint.to = std::min(constraint.to, most);
}

}  // namespace

bool ColumnConstraint::contains(std::string_view text) const {
  return !texts || std::ranges::find(*texts, text) != texts->end();
}

bool ColumnConstraint::matches(const Cell& cell) const {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return contains(*number);
  if (const auto* text = std::get_if<std::string_view>(&cell)) return contains(*text);
  return std::holds_alternative<double>(cell) || any();  // no comparison is true of NULL
}

void Conditions::narrow(std::size_t column, int op, sqlite3_value* value) {
  ColumnConstraint& constraint = constraints_[column];
  const bool is_text = columns_[column].is_text();
  if (op == kOneOf) {
    std::vector<std::string> texts;
    std::int64_t least = kMax, most = kMin;
    bool numbers = !is_text, words = is_text, none = true;
    sqlite3_value* item = nullptr;
    for (int code = sqlite3_vtab_in_first(value, &item); code == SQLITE_OK && item != nullptr;
         code = sqlite3_vtab_in_next(value, &item)) {
      const int type = sqlite3_value_type(item);
      if (type == SQLITE_NULL) continue;
      none = false;
      numbers = numbers && type == SQLITE_INTEGER;
      words = words && type == SQLITE_TEXT;
      if (type == SQLITE_INTEGER) {
        least = std::min<std::int64_t>(least, sqlite3_value_int64(item));
        most = std::max<std::int64_t>(most, sqlite3_value_int64(item));
      } else if (type == SQLITE_TEXT) {
        texts.emplace_back(text_of(item));
      }
    }
    if (none) {
      impossible_ = true;
    } else if (numbers) {
      constraint.from = std::max(constraint.from, least);
      constraint.to = std::min(constraint.to, most);
    } else if (words) {
      constraint.texts = std::move(texts);
    }
  } else if (sqlite3_value_type(value) == SQLITE_NULL) {
    impossible_ = true;  // a comparison with NULL is never true
  } else if (is_text) {
    if (op == SQLITE_INDEX_CONSTRAINT_EQ && sqlite3_value_type(value) == SQLITE_TEXT)
      constraint.texts = std::vector{std::string(text_of(value))};
  } else {
    narrow_to(constraint, op, value);
  }
  if (constraint.from > constraint.to) impossible_ = true;
}

Conditions Conditions::of_rest() const {
  Conditions rest(columns_.subspan(1));
  std::ranges::copy(constraints_ | std::views::drop(1), rest.constraints_.begin());
  constexpr sqlite3_uint64 kLast = sqlite3_uint64{1} << 63;  // all columns from 63 on
  rest.used_ = (used_ >> 1) | (used_ & kLast);
  rest.impossible_ = impossible_;
  return rest;
}

int add_table(sqlite3* db, Table table, const std::shared_ptr<SessionSources>& sources) {
  return add_module(db, {.table = std::move(table), .sources = sources, .set = nullptr});
}

int add_table(sqlite3* db, Table table, const std::shared_ptr<SessionSet>& set) {
  for (Field& field : table.fields)
    if (field.name_in_set != nullptr) field.name = field.name_in_set;
  table.fields.insert(table.fields.begin(), {"session", "TEXT", Pushdown::Chunks});
  ++table.ordered_by;  // the names are sorted
  return add_module(db, {.table = std::move(table), .sources = nullptr, .set = set});
}

std::string_view text_of(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text == nullptr
             ? std::string_view()
             : std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

}  // namespace tt::sql
