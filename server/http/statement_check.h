// Checks that SQLite can parse and plan a client's statement within limits. The first time a
// statement is seen, this happens in a child process (tracer/sandbox/sandbox.h), because the
// planner can be kept busy for minutes and cannot be interrupted. Accepted statements are
// remembered. Any thread.
#pragma once

#include <cstddef>
#include <expected>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analysis/common/page.h"
#include "analysis/sql/query.h"
#include "api/json/problem.h"
#include "tracer/sandbox/sandbox.h"

namespace tt {

class StatementCheck {
 public:
  // `sandbox`: null disables the check.
  explicit StatementCheck(Sandbox* sandbox) : sandbox_(sandbox) {}

  // Errors: QueryStopped (a limit was exceeded), TooManyQueries, Stopping (cancelled), Internal.
  // A syntax error is not detected here.
  std::expected<void, Problem> check(std::string_view statement, const ContinueCheck& keep_going,
                                     sql::TablesOf tables = sql::TablesOf::Session);

 private:
  bool is_accepted(std::string_view statement);
  void accept(std::string_view statement);

  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  Sandbox* const sandbox_;
  std::mutex mutex_;                 // guards the members below
  std::list<std::string> accepted_;  // most recently used first
  std::unordered_map<std::string_view, std::list<std::string>::iterator> by_text_;
  std::size_t bytes_ = 0;
};

}  // namespace tt
