#include "tests/api/exchange/totals_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/sql/query.h"
#include "analysis/tables/step_summary.h"
#include "tests/api/exchange/export_check.h"

namespace tt::test {
namespace {

struct OpTotals {
  std::uint64_t executions = 0, ns = 0;  // ns: modulo 2^64
};

// Walks every op of every step.
OpTotals walked_ops(const SessionReader& reader) {
  OpTotals totals;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const bool untimed = step.op_ends.empty() && !step.aborted;
    totals.executions +=
        untimed ? reader.graph(step.graph).value()->ops.size() : step.op_ends.size();
    Ns begin = step.first_op;
    for (const Ns end : step.op_ends) {
      totals.ns += static_cast<std::uint64_t>((end - begin).v);
      begin = end;
    }
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return totals;
}

// The numbers in the single row of a query result.
std::vector<std::uint64_t> query_row(const std::filesystem::path& file,
                                     const std::string& statement) {
  SCOPED_TRACE(statement);
  auto query = sql::Query::prepare(SessionReader::open(file).value(), statement);
  EXPECT_TRUE(query.has_value()) << query.error().message;
  if (!query) return {};
  const auto row = query->next();
  EXPECT_TRUE(row.has_value() && *row != nullptr);
  if (!row || *row == nullptr) return {};
  std::vector<std::uint64_t> numbers;
  for (const sql::QueryValue& value : **row)
    numbers.push_back(static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
  return numbers;
}

}  // namespace

void expect_totals_agree(const std::filesystem::path& file) {
  const SessionReader reader = SessionReader::open(file).value();
  const FiveTotals walked = walked_totals(reader);
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(
      query_row(file,
                "SELECT count(*), coalesce(sum(size_bytes) FILTER (WHERE NOT write), 0), "
                "coalesce(sum(size_bytes) FILTER (WHERE write), 0), "
                "coalesce(sum(size_bytes) FILTER (WHERE file_offset IS NOT NULL), 0), "
                "count(expert_id) FROM access"),
      (Numbers{walked.accesses, walked.read, walked.written, walked.from_file, walked.of_experts}));
  EXPECT_EQ(
      query_row(file,
                "SELECT sum(accesses), coalesce(sum(size_bytes) FILTER (WHERE NOT write), 0), "
                "coalesce(sum(size_bytes) FILTER (WHERE write), 0), "
                "coalesce(sum(accesses) FILTER (WHERE expert_id IS NOT NULL), 0) "
                "FROM access_total"),
      (Numbers{walked.accesses, walked.read, walked.written, walked.of_experts}));
  const Numbers bytes{walked.read, walked.written};
  for (const char* table : {"op", "op_total", "phase_totals"}) {
    EXPECT_EQ(
        query_row(file, std::string("SELECT sum(bytes_read), sum(bytes_written) FROM ") + table),
        bytes);
  }

  const OpTotals ops = walked_ops(reader);
  for (const char* sums : {"count(*), coalesce(sum(duration_ns), 0) FROM op",
                           "sum(executions), coalesce(sum(duration_ns), 0) FROM op_total",
                           "sum(executions), coalesce(sum(duration_ns), 0) FROM op_time"}) {
    EXPECT_EQ(query_row(file, std::string("SELECT ") + sums), (Numbers{ops.executions, ops.ns}));
  }

  const auto steps = step_summaries(reader, {.from = 0, .limit = UINT32_MAX});
  ASSERT_TRUE(steps.has_value()) << steps.error().message;
  FiveTotals of_steps;
  std::uint64_t ns_of_steps = 0;
  for (const StepSummary& step : steps->rows) {
    of_steps.accesses += step.accesses;
    of_steps.read += step.read.v;
    of_steps.written += step.written.v;
    for (const Ns ns : step.layer_ns) ns_of_steps += static_cast<std::uint64_t>(ns.v);
  }
  EXPECT_EQ(of_steps.accesses, walked.accesses);
  EXPECT_EQ((Numbers{of_steps.read, of_steps.written}), bytes);
  EXPECT_EQ(ns_of_steps, ops.ns);

  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value()) << index.error().message;
  for (const Axis by : {Axis::Tensor, Axis::OpKind, Axis::Step}) {
    const auto found = breakdown(*index, {.by = by});
    ASSERT_TRUE(found.has_value()) << found.error().message;
    TraceSums sum;
    for (const BreakdownRow& row : found->rows) sum += row.all;
    EXPECT_EQ(sum.accesses(), static_cast<double>(walked.accesses)) << to_text(by);
    EXPECT_EQ(sum.bytes_read, static_cast<double>(walked.read)) << to_text(by);
    EXPECT_EQ(sum.bytes_written, static_cast<double>(walked.written)) << to_text(by);
    // An op without accesses is in no row of an axis of accesses.
    const TraceSums& all = is_op_axis(by) ? sum : found->total.all;
    EXPECT_EQ(all.executions, static_cast<double>(ops.executions)) << to_text(by);
    EXPECT_EQ(all.time_ns, static_cast<double>(static_cast<std::int64_t>(ops.ns))) << to_text(by);
  }
  const auto expect_raster_sum = [&](Value value, double all) {
    const auto result = raster(*index, {.x = {.axis = Axis::Time, .pixels = 700},
                                        .y = {.axis = Axis::Op, .pixels = 300},
                                        .value = value});
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_NEAR(result->shown, all, 1e-9 * all) << to_text(value);
    EXPECT_NEAR(result->total, all, 1e-9 * all) << to_text(value);
  };
  expect_raster_sum(Value::Touched, static_cast<double>(walked.read + walked.written));
  expect_raster_sum(Value::Time, static_cast<double>(ops.ns));
}

}  // namespace tt::test
