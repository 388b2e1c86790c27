#include "tests/exchange/totals_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/raster.h"
#include "analysis/sql/query.h"
#include "analysis/step_summary.h"
#include "tests/exchange/export_check.h"

namespace tt::testing {
namespace {

// The numbers of the one row that a statement gives.
std::vector<std::uint64_t> asked(const std::filesystem::path& file, const std::string& statement) {
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
      asked(file,
            "SELECT count(*), coalesce(sum(size_bytes) FILTER (WHERE NOT write), 0), "
            "coalesce(sum(size_bytes) FILTER (WHERE write), 0), "
            "coalesce(sum(size_bytes) FILTER (WHERE file_offset IS NOT NULL), 0), "
            "count(expert_id) FROM access"),
      (Numbers{walked.accesses, walked.read, walked.written, walked.from_file, walked.of_experts}));
  EXPECT_EQ(asked(file,
                  "SELECT sum(accesses), coalesce(sum(size_bytes) FILTER (WHERE NOT write), 0), "
                  "coalesce(sum(size_bytes) FILTER (WHERE write), 0), "
                  "coalesce(sum(accesses) FILTER (WHERE expert_id IS NOT NULL), 0) "
                  "FROM access_total"),
            (Numbers{walked.accesses, walked.read, walked.written, walked.of_experts}));
  const Numbers bytes{walked.read, walked.written};
  for (const char* table : {"op", "op_total", "phase_totals"}) {
    EXPECT_EQ(asked(file, std::string("SELECT sum(read_bytes), sum(written_bytes) FROM ") + table),
              bytes);
  }

  const auto steps = step_summaries(reader, {.from = 0, .limit = UINT32_MAX});
  ASSERT_TRUE(steps.has_value()) << steps.error().message;
  FiveTotals of_steps;
  for (const StepSummary& step : steps->rows) {
    of_steps.accesses += step.accesses;
    of_steps.read += step.read.v;
    of_steps.written += step.written.v;
  }
  EXPECT_EQ(of_steps.accesses, walked.accesses);
  EXPECT_EQ((Numbers{of_steps.read, of_steps.written}), bytes);

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
  }
  const auto picture = raster(*index, {.x = {.axis = Axis::Time, .pixels = 700},
                                       .y = {.axis = Axis::Op, .pixels = 300},
                                       .value = Value::Touched});
  ASSERT_TRUE(picture.has_value()) << picture.error().message;
  const auto all = static_cast<double>(walked.read + walked.written);
  EXPECT_NEAR(picture->shown, all, 1e-9 * all);
  EXPECT_NEAR(picture->total, all, 1e-9 * all);
}

}  // namespace tt::testing
