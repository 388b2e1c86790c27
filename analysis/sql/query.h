// Runs one SELECT over a session, or over a set of sessions, and returns its rows one by one,
// within limits.
//
// The connection contains only the session's tables and views (trace_tables.h). Only the
// session file is opened, read-only. An authorizer rejects everything except SELECT over these
// tables. The statement is stopped when it exceeds its time or memory limit. The cost of a
// single call inside it is limited, too: values have at most kMaxValueBytes, and functions
// whose cost is the product of two lengths accept only short arguments.
//
// Every connection computes totals over all steps itself, unless the caller passes a provider
// of cached totals (analysis/index/session_totals.h).
//
// Parsing and planning a statement are not covered by these limits: SQLite checks for an interrupt
// only while it runs a statement, and nested WITH clauses that double can keep the planner busy for
// minutes. For untrusted statements, run StatementPlanner first, in a process with limits
// (tracer/sandbox): planning depends only on the statement.
//
// One thread at a time. Independent of other readers of the session.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/index/session_totals.h"
#include "analysis/sql/session_set.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/trace_error.h"

namespace tt::sql {

// 0: no limit.
struct QueryLimits {
  std::chrono::milliseconds time{0};  // wall time since prepare()
  std::uint64_t rows = 0;             // further rows are dropped, see Query::truncated()
  std::uint64_t memory = 0;           // additional bytes allocated by SQLite, approximate
  // Limits the length of values and of the statement, and replaces functions whose single call
  // could take too long (bounded_functions.h).
  bool bounded_values = false;
  // Sessions of a set that are open at a time. A join of two sessions reads both in turns.
  std::size_t open_sessions = 32;
};

inline constexpr int kMaxValueBytes = 256 << 10;
inline constexpr int kMaxStatementBytes = 64 << 10;

struct QueryError {
  enum class Kind {
    Invalid,     // SQLite cannot parse it, or evaluation failed
    NotAllowed,  // not a SELECT, or uses a table or function that is not allowed
    Timeout,     // time limit
    TooLarge,    // memory limit, or length limit of a value or the statement
    Cancelled,   // keep_going() returned false
    Session      // error of the session file, see `trace`
  };
  Kind kind;
  std::string message;
  std::optional<std::uint32_t> offset{};  // byte offset of the error in the statement
  std::optional<TraceError> trace{};
};

// std::monostate is NULL.
using QueryValue = std::variant<std::monostate, std::int64_t, double, std::string_view,
                                std::span<const std::byte>>;

class Query {
 public:
  static std::expected<Query, QueryError> prepare(SessionReader reader, std::string_view sql,
                                                  const QueryLimits& limits = {},
                                                  ContinueCheck keep_going = never_cancel,
                                                  TotalsProvider totals_provider = {});
  // Over all `sessions`: each table has the column `session` first. Damage in one of them is an
  // error that names it.
  static std::expected<Query, QueryError> prepare(SessionNames sessions, std::string_view sql,
                                                  const QueryLimits& limits = {},
                                                  ContinueCheck keep_going = never_cancel);
  Query(Query&&) noexcept;
  Query& operator=(Query&&) noexcept;
  ~Query();

  const std::vector<std::string>& columns() const;
  // Returns the next row; null at the end and after an error. Valid until the next call.
  std::expected<const std::vector<QueryValue>*, QueryError> next();
  // Whether rows were dropped because of the row limit.
  bool truncated() const;
  // If damage was found before the first row: the number of steps before the damage, which the
  // rows cover. Damage found after the first row is an error of next(); the rows returned
  // before are valid. None: no damage found.
  std::optional<std::uint32_t> readable_steps() const;

 private:
  friend class StatementPlanner;
  struct Impl;
  explicit Query(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Of what a statement's tables have the rows: of one session, or of several, which have a column
// more.
enum class TablesOf : std::uint8_t { Session, Set };

// Parses and plans untrusted statements as Query::prepare() does with `bounded_values`, without a
// session.
class StatementPlanner {
 public:
  explicit StatementPlanner(TablesOf of = TablesOf::Session);
  ~StatementPlanner();
  // Returns normally also for an invalid statement, whose error Query::prepare() reports. Throws
  // std::bad_alloc.
  void plan(std::string_view sql);

 private:
  std::unique_ptr<Query> query_;
};

}  // namespace tt::sql
