#include "tests/analysis/aggregate/raster_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/tables/tensor_table.h"
#include "tests/analysis/accesses/naive_filter.h"
#include "tests/analysis/aggregate/naive_raster.h"
#include "tracer/format/access/access.h"

namespace tt::test {

void expect_raster(const SessionReader& reader, const SessionIndex& index,
                   const RasterQuery& query) {
  SCOPED_TRACE(std::string(to_text(query.x.axis)) + " x " + to_text(query.y.axis) + ", " +
               to_text(query.value));
  const auto fast = raster(index, query);
  ASSERT_TRUE(fast.has_value()) << fast.error().message;
  ASSERT_LE(fast->x.pixels, query.x.pixels);
  ASSERT_LE(fast->y.pixels, query.y.pixels);
  const NaiveRaster slow = naive_raster(reader, index, query, *fast);
  const double tolerance = 1e-9 * std::max(1.0, slow.total);
  EXPECT_NEAR(fast->total, slow.total, tolerance);
  ASSERT_EQ(fast->cells.size(), slow.cells.size());
  double shown = 0;
  for (std::size_t i = 0; i < slow.cells.size(); ++i) {
    ASSERT_NEAR(fast->cells[i], slow.cells[i], tolerance)
        << "cell " << i % fast->x.pixels << ", " << i / fast->x.pixels;
    shown += slow.cells[i];
  }
  EXPECT_NEAR(fast->shown, shown, tolerance);
}

RasterQuery random_raster_query(Dice& dice, const SessionIndex& index) {
  RasterQuery query;
  query.value = dice.word(Value::Faults);
  query.x.axis = dice.word(Axis::All);
  do query.y.axis = dice.word(Axis::All);
  while (is_temporal(query.x.axis) && is_temporal(query.y.axis));
  const auto& steps = index.steps();
  const auto last = 1000 + static_cast<std::uint64_t>(steps.back().end.v);
  for (AxisQuery* axis : {&query.x, &query.y}) {
    axis->pixels = 1 + static_cast<std::uint32_t>(dice.size(60));
    if (!dice.one_in(3)) continue;
    const std::int64_t most = axis->axis == Axis::Time   ? steps.back().end.v
                              : is_byte_axis(axis->axis) ? 20000
                                                         : 20;
    axis->range = {static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(most))),
                   static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(most) * 2))};
  }
  if (dice.one_in(4)) query.filter.phase = dice.one_in(2) ? Phase::Prompt : Phase::Generate;
  if (dice.one_in(4)) query.filter.tokens = {dice.below(40), dice.below(120)};
  if (dice.one_in(5)) query.filter.steps = {dice.below(20), dice.below(80)};
  if (dice.one_in(5))
    query.filter.time = {static_cast<std::int64_t>(dice.below(last / 4)),
                         static_cast<std::int64_t>(dice.below(last))};
  if (dice.one_in(4)) query.filter.layers = {LayerId{0}, dice.one_in(2) ? kNoLayer : LayerId{1}};
  if (dice.one_in(6)) query.filter.component = Component::Attention;
  if (dice.one_in(8)) query.filter.kernel = Kernel::Plain;
  if (dice.one_in(6)) query.filter.op = dice.one_in(2) ? "mul_mat" : "cur";
  if (dice.one_in(6)) query.filter.tensor = dice.one_in(2) ? "BLK.0" : "cache";
  if (dice.one_in(8)) query.filter.source = Source::Disk;
  if (dice.one_in(8)) query.filter.kind = TensorKind::Weight;
  return query;
}

TraceFilter random_range_filter(Dice& dice, const SessionIndex& index) {
  TraceFilter filter;
  const std::size_t count = index.steps().size();
  std::size_t first = dice.below(count), last = dice.below(count);
  if (last < first) std::swap(first, last);
  // A position within a step, not at its begin.
  const auto within = [&](auto begin, auto end) {
    return begin + 1 +
           static_cast<decltype(begin)>(dice.below(
               static_cast<std::uint64_t>(std::max<decltype(begin)>(1, end - begin - 1))));
  };
  const IndexedStep &from = index.steps()[first], &to = index.steps()[last];
  const bool by_tokens = dice.one_in(2);
  if (by_tokens)
    filter.tokens = {within(token_begin(from), token_end(from)),
                     within(token_begin(to), token_end(to))};
  if (!by_tokens || dice.one_in(4))
    filter.time = {within(from.begin.v, from.end.v), within(to.begin.v, to.end.v)};
  return filter;
}

void expect_part_shares(const SessionReader& reader, const SessionIndex& index,
                        const TraceFilter& filter) {
  for (const Axis parts : {Axis::Expert, Axis::File, Axis::Buffer})
    for (const AxisQuery& other :
         {AxisQuery{.axis = Axis::All, .pixels = 1}, AxisQuery{.axis = Axis::Time, .pixels = 5},
          AxisQuery{.axis = Axis::Token, .pixels = 4}, AxisQuery{.axis = Axis::Step, .pixels = 3}})
      for (const Value value : {Value::Executions, Value::Time})
        expect_raster(
            reader, index,
            {.x = other, .y = {.axis = parts, .pixels = 50}, .value = value, .filter = filter});
  expect_breakdown(reader, index, Axis::Expert, filter);
  expect_breakdown(reader, index, Axis::Tensor, filter);
}

// Compares each row with a raster filtered to that row.
void expect_breakdown(const SessionReader& reader, const SessionIndex& index, Axis by,
                      const TraceFilter& filter) {
  SCOPED_TRACE(to_text(by));
  const auto found = breakdown(index, {.by = by, .filter = filter});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  struct Column {
    Value value;
    double TraceSums::* sum;
  };
  constexpr Column kColumns[] = {
      {Value::BytesRead, &TraceSums::bytes_read},  {Value::BytesWritten, &TraceSums::bytes_written},
      {Value::Reads, &TraceSums::reads},           {Value::Writes, &TraceSums::writes},
      {Value::Executions, &TraceSums::executions}, {Value::Time, &TraceSums::time_ns},
      {Value::Faults, &TraceSums::faults}};
  for (const auto& [value, sum] : kColumns) {
    for (const std::optional<Phase> phase :
         {std::optional<Phase>(), std::optional(Phase::Prompt), std::optional(Phase::Generate)}) {
      SCOPED_TRACE(std::string(to_text(value)) + (phase ? to_text(*phase) : ""));
      RasterQuery query{.x = {.axis = Axis::All, .pixels = 1},
                        .y = {.axis = by, .pixels = 1'000'000},
                        .value = value,
                        .filter = filter};
      if (phase) {
        if (filter.phase && filter.phase != phase) continue;
        query.filter.phase = phase;
      }
      const auto like = raster(index, query);
      ASSERT_TRUE(like.has_value());
      const NaiveRaster slow = naive_raster(reader, index, query, *like);
      std::map<std::int64_t, double> left;  // by key
      for (std::size_t i = 0; i < slow.cells.size(); ++i)
        left[like->y.keys.empty() ? like->y.range.from + static_cast<std::int64_t>(i)
                                  : like->y.keys[i]] += slow.cells[i];
      const double tolerance = 1e-9 * std::max(1.0, slow.total);
      const auto of = [&](const BreakdownRow& row) {
        return (!phase ? row.all : *phase == Phase::Prompt ? row.prompt : row.generate).*sum;
      };
      for (const BreakdownRow& row : found->rows) {
        EXPECT_NEAR(of(row), left[row.key], tolerance) << row.name;
        left.erase(row.key);
      }
      for (const auto& [key, amount] : left) EXPECT_EQ(amount, 0) << "missing row for " << key;
      EXPECT_NEAR(of(found->total), slow.total, tolerance);
    }
  }
}

void expect_hot_cold(const SessionIndex& index, const HotQuery& question) {
  HotQuery query = question;
  const auto found = hot_cold(index, query);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  const TraceFilter asked = query.filter;
  query.filter.kind = found->kind;
  // What is left out is in the sums of the other kinds.
  const auto rows = breakdown(index, {.by = Axis::All, .filter = query.filter});
  const auto everything = breakdown(index, {.by = Axis::All, .filter = asked});
  ASSERT_TRUE(rows && everything);
  double bytes = rows->total.all.bytes();
  for (const auto& [kind, sums] : found->other_kinds) bytes += sums.bytes();
  EXPECT_NEAR(bytes, everything->total.all.bytes(), 1e-9 * std::max(1.0, bytes));
  const auto whole = breakdown(index, {.by = query.by, .filter = query.filter});
  ASSERT_TRUE(whole.has_value());
  ASSERT_EQ(found->rows.size(), whole->rows.size());
  const Value value = found->value;
  if (query.value) {
    EXPECT_EQ(value, *query.value);
  }
  std::vector<double> amounts;
  for (const BreakdownRow& row : whole->rows) amounts.push_back(row.all.of(value));
  std::ranges::sort(amounts, std::greater());
  const std::size_t n = amounts.size();
  // Integer arithmetic on whole percents.
  const auto hot_percent = static_cast<std::size_t>(std::lround(100 * query.hot_share));
  const auto cold_percent = static_cast<std::size_t>(std::lround(100 * query.cold_share));
  const std::size_t hot = (n * hot_percent + 99) / 100, cold = n * cold_percent / 100;
  // The class by the limits alone. Rows with equal values get the class that all of them have by
  // the limits, and are warm if these are different ones.
  std::map<double, std::set<Heat>> heats;
  const auto by_limits = [&](std::size_t i) {
    return i < hot ? Heat::Hot : i >= n - cold ? Heat::Cold : Heat::Warm;
  };
  for (std::size_t i = 0; i < n; ++i) heats[amounts[i]].insert(by_limits(i));
  bool divided = false;
  std::map<Heat, std::pair<std::uint64_t, std::uint64_t>> classes;  // rows, bytes of tensors
  std::map<Heat, double> sums;
  for (std::size_t i = 0; i < n; ++i) {
    const HotCold::Row& row = found->rows[i];
    EXPECT_EQ(row.row.all.of(value), amounts[i]) << row.row.name;
    const std::set<Heat>& of_equals = heats[amounts[i]];
    EXPECT_EQ(row.heat, of_equals.size() == 1 ? *of_equals.begin() : Heat::Warm);
    divided |= of_equals.size() > 1;
    if (query.by == Axis::Tensor) {
      EXPECT_EQ(row.size, index.names().tensors()[static_cast<std::size_t>(row.row.key)].size);
    }
    ++classes[row.heat].first;
    classes[row.heat].second += row.size.v;
    sums[row.heat] += row.row.all.of(value);
  }
  for (const Heat heat : {Heat::Hot, Heat::Warm, Heat::Cold}) {
    const HotCold::Class& of = found->classes[static_cast<std::size_t>(heat)];
    EXPECT_EQ(of.rows, classes[heat].first);
    EXPECT_EQ(of.size.v, classes[heat].second);
    EXPECT_NEAR(of.sums.of(value), sums[heat], 1e-9 * std::max(1.0, sums[heat]));
  }
  EXPECT_EQ(found->note.contains("equal"),
            divided || value != query.value.value_or(Value::Accesses))
      << found->note;
  // A page is a range of the full table; totals and counts are those of all rows.
  for (const PageRange page :
       {PageRange{.from = 0, .limit = 3}, {.from = n / 2, .limit = 2}, {.from = n, .limit = 5}}) {
    HotQuery part = query;
    part.page = page;
    const auto hottest = hot_cold(index, part);
    const auto largest = breakdown(index, {.by = query.by,
                                           .filter = query.filter,
                                           .order = Order<Value>{.by = value, .descending = true},
                                           .page = page});
    ASSERT_TRUE(hottest && largest);
    EXPECT_EQ(hottest->row_count, n);
    EXPECT_EQ(largest->row_count, n);
    EXPECT_EQ(hottest->classes[0].rows, found->classes[0].rows);
    const std::size_t length = std::min<std::size_t>(page.limit, n - page.from);
    ASSERT_EQ(hottest->rows.size(), length);
    ASSERT_EQ(largest->rows.size(), length);
    for (std::size_t i = 0; i < length; ++i) {
      EXPECT_EQ(hottest->rows[i].row, found->rows[page.from + i].row);
      EXPECT_EQ(hottest->rows[i].heat, found->rows[page.from + i].heat);
      // Times are ranked by the median of a step, not by the sum (step_times_test.cpp).
      if (value != Value::Time || is_temporal(query.by)) {
        EXPECT_EQ(largest->rows[i], found->rows[page.from + i].row);
      }
    }
  }
}

// Walks every read of the mapped files in order.
std::uint64_t expect_read_order(const SessionReader& reader, const SessionIndex& index,
                                const TraceFilter& filter, std::uint64_t gap) {
  ReadOrder total;
  std::map<std::int32_t, ReadOrder> layers;
  std::vector<Sequentiality::OfStep> steps;
  std::optional<FileRange> last;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0 || (filter.phase && step.phase != *filter.phase)) return true;
    const auto graph = reader.graph(step.graph).value();
    Sequentiality::OfStep row{step.id, step.first_token, step.n_tokens, {}};
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      if (access.write || access.range.empty() ||
          graph->tensor(graph->root(access.tensor)).source != Source::Disk ||
          !op_passes(filter, *graph, access.op.v, kernel_rules_of(index.info())))
        return;
      const std::uint64_t end = last ? last->offset + last->length : 0;
      const bool follows = last && last->file == access.range.file && access.range.offset >= end &&
                           access.range.offset <= end + gap;
      for (ReadOrder* order : {&total, &layers[graph->op(access.op).layer.v], &row.order}) {
        ++order->reads;
        order->bytes.v += access.range.length;
        order->sequential += follows;
        if (follows) order->sequential_bytes.v += access.range.length;
      }
      last = access.range;
    });
    if (row.order.reads > 0) steps.push_back(row);
    return true;
  });
  EXPECT_TRUE(read.has_value());
  const auto found = sequentiality(index, filter, gap, {.from = 0, .limit = 1000});
  EXPECT_TRUE(found.has_value());
  if (!found) return 0;
  EXPECT_EQ(found->total, total);
  EXPECT_EQ(found->steps.rows, steps);
  EXPECT_EQ(found->steps.total, steps.size());
  EXPECT_EQ(found->layers.size(), layers.size());
  for (const auto& [layer, order] : found->layers) EXPECT_EQ(order, layers[layer.v]) << layer.v;
  return total.reads;
}

}  // namespace tt::test
