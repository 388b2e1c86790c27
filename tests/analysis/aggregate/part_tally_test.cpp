// What the parts of a series have of the executions and the time of ops, against a simple
// computation.
#include "analysis/aggregate/part_tally.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/index/session_index.h"
#include "analysis/index/template_outline.h"

namespace tt::test {
namespace {

// Ops of one rule: each reads the same rows, step by step.
struct RowReads {
  std::uint32_t ops = 0, limit = 0;
  std::vector<std::vector<std::uint32_t>> rows;  // of each step, ascending
  static std::uint64_t ns(std::size_t step, std::uint32_t op) { return 1000 * step + 7 * op + 5; }
};

Series series_of(const RowReads& reads) {
  auto outline = std::make_shared<TemplateOutline>();
  outline->rules.resize(1);
  outline->rules[0].rule.separate = true;
  outline->rules[0].rule.limit = reads.limit;
  outline->ops.resize(reads.ops);
  outline->accesses.resize(reads.ops);
  for (std::uint32_t i = 0; i < reads.ops; ++i) {
    outline->ops[i].main = i;
    outline->accesses[i].rule = 0;
    outline->divided_ops.push_back(i);
  }
  Series series;
  series.ran = reads.ops;
  series.outline = std::move(outline);
  series.parts = NumberTable<std::uint64_t>(1);
  series.hits = NumberTable<std::uint32_t>(1);
  series.divided_ns = NumberTable<std::uint64_t>(reads.ops);
  series.number_ends = {0};
  series.parts.add_zeros();
  series.hits.add_zeros();
  for (std::size_t step = 0; step < reads.rows.size(); ++step) {
    const std::vector<std::uint32_t>& rows = reads.rows[step];
    series.steps.push_back(static_cast<std::uint32_t>(step));
    series.parts.add_copy_of_last()[0] += rows.size();
    series.hits.add_copy_of_last()[0] += rows.empty() ? 0U : 1U;
    series.sets.add_zeros();
    series.numbers.insert(series.numbers.end(), rows.begin(), rows.end());
    series.number_ends.push_back(series.numbers.size());
    const auto ns = series.divided_ns.add_zeros();
    for (std::uint32_t op = 0; op < reads.ops; ++op) ns[op] = RowReads::ns(step, op);
  }
  return series;
}

// By row, and in steps without rows: kUnknown. `op`: its time; nullopt: executions.
constexpr std::uint32_t kUnknown = UINT32_MAX;
using Amounts = std::map<std::uint32_t, double>;
Amounts expected(const RowReads& reads, std::size_t from, std::size_t to,
                 std::optional<std::uint32_t> op) {
  Amounts amounts;
  for (std::size_t step = from; step < to; ++step) {
    const std::vector<std::uint32_t>& rows = reads.rows[step];
    const std::uint64_t whole = op ? RowReads::ns(step, *op) : 1;
    if (rows.empty()) amounts[kUnknown] += static_cast<double>(whole);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint64_t rest = i == 0 ? whole % rows.size() : 0;
      amounts[rows[i]] += op ? static_cast<double>(whole / rows.size() + rest)
                             : 1 / static_cast<double>(rows.size());
    }
  }
  return amounts;
}

Amounts amounts_of(const PartTally::Division& division) {
  Amounts amounts;
  if (division.unknown > 0) amounts[kUnknown] = division.unknown;
  std::uint32_t next = 0;
  for (const PartTally::Share& part : division.parts) {
    EXPECT_GE(part.number, next);
    next = part.number + 1;
    amounts[part.number] = part.amount;
  }
  return amounts;
}

std::vector<std::uint32_t> every(std::uint32_t stride, std::uint32_t limit) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < limit; row += stride) rows.push_back(row);
  return rows;
}

TEST(PartTally, DividesTheTimeOfEachStep) {
  const RowReads reads{.ops = 3, .limit = 10, .rows = {{1, 4, 9}, {}, {4}, {0, 1, 2, 4}}};
  const Series series = series_of(reads);
  PartTally tally;
  for (const auto& [from, to] : {std::pair(0, 4), {0, 1}, {1, 2}, {2, 4}}) {
    tally.select(series, static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    const auto of = [&](std::optional<std::uint32_t> op) {
      return expected(reads, static_cast<std::size_t>(from), static_cast<std::size_t>(to), op);
    };
    for (std::uint32_t op = 0; op < reads.ops; ++op) {
      EXPECT_EQ(amounts_of(tally.time_of(op)), of(op));
      EXPECT_EQ(amounts_of(tally.executions_of(op)), of(std::nullopt));
    }
  }
}

// A file can have thousands of ops that read the same million rows.
TEST(PartTally, MemoryDoesNotGrowWithOpsTimesRows) {
  constexpr std::uint32_t kRows = 30'000;
  const RowReads reads{.ops = 200, .limit = kRows, .rows = {every(1, kRows), every(2, kRows)}};
  const Series series = series_of(reads);
  const auto allocated = [] {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  constexpr std::size_t kAllowedBytes = std::size_t{16} << 20;  // all ops: 48 MB for each step
  const std::size_t before = allocated();
  PartTally tally;
  for (const std::size_t to : {std::size_t{1}, std::size_t{2}}) {
    tally.select(series, 0, to);
    for (std::uint32_t op = 0; op < reads.ops; ++op) {
      const PartTally::Division& division = tally.time_of(op);
      ASSERT_LT(allocated(), before + kAllowedBytes) << op;
      if (op % 100 == 0) {
        ASSERT_EQ(amounts_of(division), expected(reads, 0, to, op));
      }
    }
    EXPECT_EQ(amounts_of(tally.executions_of(1)), expected(reads, 0, to, std::nullopt));
  }
}

}  // namespace
}  // namespace tt::test
