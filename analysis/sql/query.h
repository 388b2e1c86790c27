// One SELECT over a session, read row by row, within limits.
//
// The connection has nothing but the session's tables and views (trace_tables.h):
// no file is opened but the session, and that to be read. An authorizer refuses
// everything but SELECT over them. With limits the statement is stopped when it has
// taken its time or memory; what a single call inside it could cost is bounded, too:
// values have at most kMostValueBytes, and functions whose cost is the product of two
// lengths take short ones only.
//
// Totals over all steps are found anew by every connection, unless somebody lends them
// (analysis/index/session_totals.h).
//
// One thread at a time. Lives without the session's other readers.
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
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/trace_error.h"

namespace tt::sql {

// 0: no limit.
struct QueryLimits {
  std::chrono::milliseconds time{0};  // from prepare() on, whoever waits
  std::uint64_t rows = 0;             // further rows are left out: Query::cut_off()
  std::uint64_t memory = 0;           // bytes that SQLite may hold more than before, about
  // Of one value and of the statement; functions that could run away in one call.
  bool short_values = false;
};

inline constexpr int kMostValueBytes = 256 << 10;
inline constexpr int kMostStatementBytes = 64 << 10;

struct QueryError {
  enum class Kind {
    NotUnderstood,  // by SQLite, or it failed on a value
    Refused,        // it is no SELECT, or names what is not there for it
    TooSlow,
    TooLarge,   // memory, or the length of a value
    Cancelled,  // keep_going() said so
    Session     // the session's file: `trace`
  };
  Kind kind;
  std::string message;
  std::optional<std::uint32_t> offset{};  // byte of the statement that it is about
  std::optional<TraceError> trace{};
};

// Monostate: NULL.
using QueryValue = std::variant<std::monostate, std::int64_t, double, std::string_view,
                                std::span<const std::byte>>;

class Query {
 public:
  static std::expected<Query, QueryError> prepare(SessionReader reader, std::string_view sql,
                                                  const QueryLimits& limits = {},
                                                  KeepGoing keep_going = always,
                                                  LendTotals lend_totals = {});
  Query(Query&&) noexcept;
  Query& operator=(Query&&) noexcept;
  ~Query();

  const std::vector<std::string>& columns() const;
  // The next row; null at the end. Valid until the next call. After an error there
  // is no row any more.
  std::expected<const std::vector<QueryValue>*, QueryError> next();
  // There were more rows than the limit.
  bool cut_off() const;
  // Where damage was in the way of the first row: the rows are of so many steps, those
  // before the damage. Behind the first row damage is an error of next(): what came is of
  // what is whole. None: it was not met.
  std::optional<std::uint32_t> whole_steps() const;

 private:
  struct Impl;
  explicit Query(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::sql
