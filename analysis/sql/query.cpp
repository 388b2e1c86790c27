#include "analysis/sql/query.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <format>
#include <new>
#include <utility>

#include "analysis/sql/bounded_functions.h"
#include "analysis/sql/error_offset.h"
#include "analysis/sql/query_authorizer.h"
#include "analysis/sql/trace_tables.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"

namespace tt::sql {

namespace {

// The coarse clock is cheap enough to be read every few microseconds; its resolution of a few
// ms is sufficient.
std::int64_t coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Blocks of memory that SQLite holds in this process.
std::int64_t allocations() {
  sqlite3_int64 now = 0, highest = 0;
  sqlite3_status64(SQLITE_STATUS_MALLOC_COUNT, &now, &highest, 0);
  return now;
}

// SQLite reports no offset for "no such table: acces", unlike for columns and functions.
std::optional<std::uint32_t> offset_of_missing(std::string_view message, std::string_view sql) {
  constexpr std::string_view kMissing = "no such ";
  const std::size_t colon = message.find(": ");
  if (!message.starts_with(kMissing) || colon == std::string_view::npos) return std::nullopt;
  const std::string_view what = message.substr(kMissing.size(), colon - kMissing.size());
  const std::string_view name = message.substr(colon + 2);
  return what == "table" ? offset_of_table(sql, name) : offset_of_name(sql, name);
}

std::vector<std::string> columns_of(sqlite3* db, std::string_view table) {
  sqlite3_stmt* made = nullptr;
  const std::string sql = std::format("SELECT * FROM {}", table);
  sqlite3_prepare_v2(db, sql.c_str(), -1, &made, nullptr);
  std::vector<std::string> names;
  for (int i = 0; i < sqlite3_column_count(made); ++i) {
    const char* name = sqlite3_column_name(made, i);
    names.emplace_back(name != nullptr ? name : "");
  }
  sqlite3_finalize(made);
  return names;
}

// For "no such table: X" and "no such column: X": the most similar names, and all that exist in
// the tables of the statement.
std::string names_that_exist(sqlite3* db, std::string_view message, std::string_view sql) {
  constexpr std::string_view kNoTable = "no such table: ", kNoColumn = "no such column: ";
  const auto sentence = [](std::string text) { return text.empty() ? "." : text; };
  std::vector<std::string> tables;
  for (const auto names : {trace_table_names(), trace_view_names()})
    tables.insert(tables.end(), names.begin(), names.end());
  if (message.starts_with(kNoTable)) {
    return sentence(did_you_mean(message.substr(kNoTable.size()), tables)) +
           " Tables: " + join(tables) + ".";
  }
  if (!message.starts_with(kNoColumn)) return {};
  std::string_view missing = message.substr(kNoColumn.size());
  missing.remove_prefix(missing.rfind('.') + 1);  // "table.column"; npos + 1 is 0
  std::string lists;
  std::vector<std::string> all;
  for (const std::string& table : tables) {
    if (!offset_of_name(sql, table)) continue;
    const std::vector<std::string> columns = columns_of(db, table);
    lists += std::format(" Columns of {}: {}.", table, join(columns));
    all.insert(all.end(), columns.begin(), columns.end());
  }
  return sentence(did_you_mean(missing, all)) + lists;
}

}  // namespace

struct Query::Impl {
  struct CloseDatabase {
    void operator()(sqlite3* open) const noexcept { sqlite3_close_v2(open); }
  };
  struct FinalizeStatement {
    void operator()(sqlite3_stmt* made) const noexcept { sqlite3_finalize(made); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

  QueryLimits limits;
  ContinueCheck keep_going;
  std::int64_t deadline_ms = 0;
  std::int64_t next_check_ms = 0;  // next call of keep_going(), which may be a system call
  std::int64_t memory_before = 0, allocations_before = 0;  // of all connections of this process
  std::optional<QueryError> stopped;                       // why SQLite was interrupted
  std::optional<Rejection> rejected;                       // what the authorizer rejected
  // The statement is destroyed before the connection.
  std::unique_ptr<sqlite3, CloseDatabase> db;
  Statement statement;
  std::vector<std::string> columns;
  std::vector<QueryValue> row;
  std::shared_ptr<SessionSource> source;  // null: a set of sessions
  std::optional<std::uint32_t> readable_steps;
  std::uint64_t rows = 0;
  bool truncated = false, ended = false;

  std::int64_t sorting_ms() const;
  bool within_limits();
  QueryError error(int code, std::string_view sql = {});
  template <class Sessions>
  std::expected<void, QueryError> open(const std::shared_ptr<Sessions>& sessions);
  std::expected<void, QueryError> compile(std::string_view sql);
  std::expected<bool, QueryError> step();
};

// SQLite sorts all rows of an ORDER BY in a single instruction, which cannot be interrupted: 9 s
// for the four million short rows that fit into the memory limit. So the time for sorting what is
// held counts before it begins. A row that waits to be sorted is an allocation of its own; a page
// with the rows of a group or of DISTINCT is one for many rows.
std::int64_t Query::Impl::sorting_ms() const {
  constexpr std::int64_t kFewBytes = 4 << 20;  // sorted in a few milliseconds
  constexpr std::int64_t kRowsPerMs = 400;
  if (sqlite3_memory_used() - memory_before < kFewBytes) return 0;
  return (allocations() - allocations_before) / kRowsPerMs;
}

bool Query::Impl::within_limits() {
  const std::int64_t now = coarse_ms();
  if (deadline_ms != 0 && now + sorting_ms() >= deadline_ms) {
    stopped = QueryError{QueryError::Kind::Timeout,
                         std::format("The statement exceeded the time limit of {} ms. Select fewer "
                                     "steps or tensors, or use a view of totals.",
                                     limits.time.count())};
    return false;
  }
  if (limits.memory != 0 &&
      sqlite3_memory_used() - memory_before > static_cast<std::int64_t>(limits.memory)) {
    stopped = QueryError{QueryError::Kind::TooLarge,
                         std::format("The statement exceeded the memory limit of {} MiB. Group or "
                                     "sort fewer rows.",
                                     limits.memory >> 20)};
    return false;
  }
  if (now < next_check_ms) return true;
  next_check_ms = now + 50;
  if (keep_going()) return true;
  stopped = QueryError{QueryError::Kind::Cancelled, cancelled_error().message};
  return false;
}

// The error of the last SQLite call.
QueryError Query::Impl::error(int code, std::string_view sql) {
  using Kind = QueryError::Kind;
  if (stopped) return *stopped;
  const std::string message = sqlite3_errmsg(db.get());
  std::optional<std::uint32_t> offset;
  if (const int at = sqlite3_error_offset(db.get());
      at >= 0 && static_cast<std::size_t>(at) <= sql.size())
    offset = static_cast<std::uint32_t>(at);
  // SQLite returns other codes than SQLITE_AUTH for some actions that the authorizer denies,
  // such as functions, and reports read-only virtual tables without calling the authorizer.
  if (rejected)
    return {Kind::NotAllowed, rejected->message, offset ? offset : offset_of(*rejected, sql)};
  if (message.ends_with("may not be modified"))
    return {Kind::NotAllowed, kOnlySelect, offset_of_verb(sql)};
  if (message.ends_with("syntax error")) {
    return {.kind = Kind::Invalid,
            .message = message +
                       ". A statement has the form SELECT column, column FROM table "
                       "WHERE condition GROUP BY column; examples: docs/sql.md",
            .offset = offset};
  }
  switch (code & 0xff) {
    case SQLITE_AUTH:
      return {Kind::NotAllowed, message};
    case SQLITE_TOOBIG:
      return {Kind::TooLarge, "A value or the statement exceeds the length limit."};
    case SQLITE_NOMEM:
    case SQLITE_FULL:
      return {Kind::TooLarge, "Out of memory for this statement."};
    case SQLITE_CORRUPT:
      return {.kind = Kind::Session,
              .message = message,
              .trace = TraceError{TraceError::Kind::Damaged, message}};
    default:
      break;
  }
  if (!offset) offset = offset_of_missing(message, sql);
  return {Kind::Invalid, message + names_that_exist(db.get(), message, sql), offset};
}

// `Sessions`: SessionSources or SessionSet.
template <class Sessions>
std::expected<void, QueryError> Query::Impl::open(const std::shared_ptr<Sessions>& sessions) {
  memory_before = sqlite3_memory_used();
  allocations_before = allocations();
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(
      ":memory:", &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  db.reset(handle);
  if (code != SQLITE_OK)
    return std::unexpected(
        QueryError{QueryError::Kind::TooLarge, "Out of memory for this statement."});
  int made = SQLITE_OK;
  if (limits.memory != 0)  // drops temporary views, so it must run before they are created
    made = sqlite3_exec(handle, "PRAGMA temp_store=MEMORY", nullptr, nullptr, nullptr);
  if (made == SQLITE_OK) made = add_trace_tables(handle, sessions);
  if (made == SQLITE_OK && limits.bounded_values) made = add_bounded_functions(handle);
  if (made != SQLITE_OK) return std::unexpected(error(made));

  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  if (limits.bounded_values) {
    constexpr std::array kLimits = {
        std::pair{SQLITE_LIMIT_LENGTH, kMaxValueBytes},
        std::pair{SQLITE_LIMIT_SQL_LENGTH, kMaxStatementBytes},
        std::pair{SQLITE_LIMIT_COLUMN, 200},
        std::pair{SQLITE_LIMIT_EXPR_DEPTH, 100},
        std::pair{SQLITE_LIMIT_COMPOUND_SELECT, 20},
        std::pair{SQLITE_LIMIT_VDBE_OP, 100'000},
        std::pair{SQLITE_LIMIT_FUNCTION_ARG, 50},
        std::pair{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
        std::pair{SQLITE_LIMIT_VARIABLE_NUMBER, 1},
        std::pair{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        std::pair{SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (const auto& [which, limit] : kLimits) sqlite3_limit(handle, which, limit);
  }
  sqlite3_set_authorizer(
      handle,
      [](void* self, int action, const char* first, const char* second, const char*, const char*) {
        const auto why = check_authorization(action, first, second);
        if (!why) return SQLITE_OK;
        static_cast<Impl*>(self)->rejected = *why;
        return SQLITE_DENY;
      },
      this);
  constexpr int kInstructions = 100;  // one may be a function call over kMaxValueBytes
  sqlite3_progress_handler(
      handle, kInstructions,
      [](void* self) { return static_cast<Impl*>(self)->within_limits() ? 0 : 1; }, this);
  return {};
}

std::expected<void, QueryError> Query::Impl::compile(std::string_view sql) {
  using Kind = QueryError::Kind;
  if (limits.bounded_values && sql.size() > static_cast<std::size_t>(kMaxStatementBytes))
    return std::unexpected(
        QueryError{Kind::TooLarge,
                   std::format("The statement must not exceed {} KiB.", kMaxStatementBytes >> 10)});
  if (sql.size() > (1u << 30) || sql.contains('\0'))
    return std::unexpected(
        QueryError{Kind::Invalid, "The statement must not contain a zero byte."});
  const auto prepare = [&](std::string_view text, const char** tail) {
    sqlite3_stmt* made = nullptr;
    const int code =
        sqlite3_prepare_v3(db.get(), text.data(), static_cast<int>(text.size()), 0, &made, tail);
    return std::pair{code, Statement(made)};
  };
  const char* tail = nullptr;
  auto [code, made] = prepare(sql, &tail);
  if (code != SQLITE_OK) return std::unexpected(error(code, sql));
  if (made == nullptr) return std::unexpected(QueryError{Kind::Invalid, "The statement is empty."});
  const std::string_view rest(tail, static_cast<std::size_t>(sql.data() + sql.size() - tail));
  const auto [rest_code, second] = prepare(rest, nullptr);
  if (rest_code != SQLITE_OK || second != nullptr)
    return std::unexpected(QueryError{Kind::NotAllowed, "Only one statement is allowed.",
                                      static_cast<std::uint32_t>(tail - sql.data())});
  if (sqlite3_stmt_readonly(made.get()) == 0 || sqlite3_column_count(made.get()) == 0)
    return std::unexpected(QueryError{Kind::NotAllowed, kOnlySelect, offset_of_verb(sql)});
  statement = std::move(made);
  for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
    const char* name = sqlite3_column_name(statement.get(), i);
    columns.emplace_back(name != nullptr ? name : "");
  }
  row.resize(columns.size());
  return {};
}

// Returns whether there is a row. If damage is found before the first row, runs the statement
// again over the steps before the damage.
std::expected<bool, QueryError> Query::Impl::step() {
  const int code = sqlite3_step(statement.get());
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code == SQLITE_ROW;
  QueryError why = error(code);
  const bool damaged = why.trace && why.trace->kind == TraceError::Kind::Damaged;
  if (!damaged || rows > 0 || readable_steps || source == nullptr)
    return std::unexpected(std::move(why));
  sqlite3_reset(statement.get());
  const auto end = source->truncate_at_damage();
  if (stopped) return std::unexpected(*stopped);
  if (!end || !*end) return std::unexpected(std::move(why));
  const int again = sqlite3_step(statement.get());
  if (stopped) return std::unexpected(*stopped);
  if (again != SQLITE_ROW && again != SQLITE_DONE) return std::unexpected(std::move(why));
  readable_steps = *end;
  return again == SQLITE_ROW;
}

namespace {

QueryValue value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string_view(text,
                              static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement, column));
      return std::span(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
    default:
      return std::monostate{};
  }
}

}  // namespace

Query::Query(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Query::Query(Query&&) noexcept = default;
Query& Query::operator=(Query&&) noexcept = default;
Query::~Query() = default;

namespace {

// Calls open() of `impl` with what `sessions` makes of the check that stops at the limits.
template <class Impl, class Sessions>
std::expected<void, QueryError> start(Impl& impl, std::string_view sql, const QueryLimits& limits,
                                      ContinueCheck keep_going, Sessions sessions) {
  impl.limits = limits;
  impl.keep_going = std::move(keep_going);
  if (limits.time.count() != 0) impl.deadline_ms = coarse_ms() + limits.time.count();
  if (auto opened = impl.open(sessions([of = &impl] { return of->within_limits(); })); !opened)
    return opened;
  return impl.compile(sql);
}

}  // namespace

std::expected<Query, QueryError> Query::prepare(SessionReader reader, std::string_view sql,
                                                const QueryLimits& limits, ContinueCheck keep_going,
                                                TotalsProvider totals_provider) {
  auto impl = std::make_unique<Impl>();
  const auto single = [&](ContinueCheck within_limits) {
    impl->source = std::make_shared<SessionSource>(std::move(reader), std::move(within_limits),
                                                   std::move(totals_provider));
    return std::make_shared<SingleSession>(impl->source);
  };
  if (auto begun = start(*impl, sql, limits, std::move(keep_going), single); !begun)
    return std::unexpected(begun.error());
  return Query(std::move(impl));
}

std::expected<Query, QueryError> Query::prepare(SessionNames sessions, std::string_view sql,
                                                const QueryLimits& limits,
                                                ContinueCheck keep_going) {
  auto impl = std::make_unique<Impl>();
  const auto set = [&](ContinueCheck within_limits) {
    return std::make_shared<SessionSet>(std::move(sessions), std::move(within_limits),
                                        limits.open_sessions);
  };
  if (auto begun = start(*impl, sql, limits, std::move(keep_going), set); !begun)
    return std::unexpected(begun.error());
  return Query(std::move(impl));
}

StatementPlanner::StatementPlanner(TablesOf of) {
  auto impl = std::make_unique<Query::Impl>();
  impl->limits.bounded_values = true;
  const auto opened =
      of == TablesOf::Set
          ? impl->open(std::make_shared<SessionSet>(SessionNames{}, never_cancel, 1))
          : impl->open(std::make_shared<SingleSession>(SessionSource::for_planning()));
  if (!opened) throw std::bad_alloc();
  query_ = std::unique_ptr<Query>(new Query(std::move(impl)));
}
StatementPlanner::~StatementPlanner() = default;

void StatementPlanner::plan(std::string_view sql) {
  const auto planned = query_->impl_->compile(sql);
  const int code = sqlite3_errcode(query_->impl_->db.get()) & 0xff;
  if (!planned && code == SQLITE_NOMEM) throw std::bad_alloc();
}

const std::vector<std::string>& Query::columns() const { return impl_->columns; }
bool Query::truncated() const { return impl_->truncated; }
std::optional<std::uint32_t> Query::readable_steps() const { return impl_->readable_steps; }

std::expected<const std::vector<QueryValue>*, QueryError> Query::next() {
  Impl& query = *impl_;
  if (query.ended) return nullptr;
  const auto found = query.step();
  query.ended = !found || !*found;
  if (!found) return std::unexpected(found.error());
  if (query.ended) return nullptr;
  if (query.limits.rows != 0 && query.rows == query.limits.rows) {
    query.ended = query.truncated = true;
    return nullptr;
  }
  ++query.rows;
  for (std::size_t i = 0; i < query.row.size(); ++i)
    query.row[i] = value_of(query.statement.get(), static_cast<int>(i));
  return &query.row;
}

}  // namespace tt::sql
