#include "server/http/statement_check.h"

#include <chrono>
#include <format>
#include <utility>

#include "analysis/sql/query.h"

namespace tt {

namespace {

// A statement of thousands of terms takes a few milliseconds and 2 MB. The limit of the elapsed
// time is longer than that of the CPU time: on a busy machine a simple statement waits for a
// processor.
constexpr JobLimits kLimits{.time = std::chrono::milliseconds(3000),
                            .cpu_time = std::chrono::milliseconds(1000),
                            .memory_bytes = 32u << 20,
                            .stack_bytes = 2u << 20,
                            .result_bytes = 1u << 10};

Problem problem_of_job(const JobError& error) {
  using Kind = JobError::Kind;
  switch (error.kind) {
    case Kind::CpuTime:
    case Kind::Memory:
    case Kind::Crash:
    case Kind::ResultSize:
      return {ErrorCode::QueryStopped,
              std::format("The statement {} while it was planned. Use fewer nested subqueries, "
                          "WITH clauses and joins.",
                          error.reason)};
    case Kind::Cancelled:
      return {ErrorCode::Stopping, "The request was cancelled."};
    case Kind::Time:
      return {ErrorCode::TooManyQueries,
              "The machine is too busy to plan the statement. Try again in a moment."};
    case Kind::Busy:
      return {ErrorCode::TooManyQueries, "Too many statements are running. Try again in a moment."};
    case Kind::Unavailable:
      break;
  }
  return {ErrorCode::Internal, std::format("The statement {}.", error.reason)};
}

}  // namespace

bool StatementCheck::is_accepted(std::string_view statement) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_text_.find(statement);
  if (found == by_text_.end()) return false;
  accepted_.splice(accepted_.begin(), accepted_, found->second);
  return true;
}

void StatementCheck::accept(std::string_view statement) {
  const std::scoped_lock lock(mutex_);
  if (by_text_.contains(statement)) return;
  accepted_.emplace_front(statement);
  by_text_.emplace(accepted_.front(), accepted_.begin());
  bytes_ += statement.size();
  while (bytes_ > kMaxBytes) {
    bytes_ -= accepted_.back().size();
    by_text_.erase(accepted_.back());
    accepted_.pop_back();
  }
}

std::expected<void, Problem> StatementCheck::check(std::string_view statement,
                                                   const ContinueCheck& keep_going,
                                                   sql::TablesOf tables) {
  // A longer one is rejected before it is parsed.
  if (sandbox_ == nullptr || std::cmp_greater(statement.size(), sql::kMaxStatementBytes)) return {};
  const char* const job = tables == sql::TablesOf::Set ? "set_sql" : "sql";
  const std::string key = std::format("{} {}", job, statement);
  if (is_accepted(key)) return {};
  const auto planned = sandbox_->run(job, statement, kLimits, keep_going);
  if (!planned) return std::unexpected(problem_of_job(planned.error()));
  accept(key);
  return {};
}

}  // namespace tt
