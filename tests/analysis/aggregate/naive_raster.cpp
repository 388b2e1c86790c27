#include "tests/analysis/aggregate/naive_raster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "analysis/tables/tensor_table.h"
#include "tests/analysis/accesses/naive_filter.h"
#include "tests/analysis/aggregate/naive_axis_pixels.h"
#include "tests/analysis/aggregate/naive_faults.h"
#include "tests/analysis/aggregate/naive_sums.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

constexpr Axis kAxesOfWhen[] = {Axis::Step, Axis::Token, Axis::Time};

double overlap(double begin, double end, double from, double to) {
  return std::max(0.0, std::min(end, to) - std::max(begin, from)) / (end - begin);
}

// The range of a step on a step, token or time axis.
Range<std::int64_t> extent(Axis axis, const Step& step) {
  if (axis == Axis::Step) return {step.id.v, std::int64_t{step.id.v} + 1};
  if (axis == Axis::Token)
    return {step.first_token, std::int64_t{step.first_token} + std::max(1U, step.n_tokens)};
  return {step.begin.v, std::max(step.end.v, step.begin.v + 1)};
}

// The share of an op of a step within a range of a step, token or time axis.
double share_in(Axis axis, const Step& step, std::uint32_t op, Range<std::int64_t> in) {
  const auto from = static_cast<double>(in.from), to = static_cast<double>(in.to);
  const Range<std::int64_t> all = extent(axis, step);
  if (axis == Axis::Time && (all.from < in.from || all.to > in.to) && !step.op_ends.empty()) {
    const std::int64_t begin = op == 0 ? step.first_op.v : step.op_ends[op - 1].v;
    const std::int64_t end = step.op_ends[op].v;
    if (end <= begin) return in.contains(begin) ? 1 : 0;
    return overlap(static_cast<double>(begin), static_cast<double>(end), from, to);
  }
  return overlap(static_cast<double>(all.from), static_cast<double>(all.to), from, to);
}

class NaiveRasterBuilder {
 public:
  NaiveRasterBuilder(const SessionReader& reader, const SessionIndex& index,
                     const RasterQuery& query, const Raster& like)
      : reader_(reader),
        index_(index),
        query_(query),
        like_(like),
        filter_(query.filter),
        rules_(kernel_rules_of(index.info())) {
    out_.cells.resize(std::size_t{like.x.pixels} * like.y.pixels);
  }

  void add_step(const Step& step) {
    if (step.graph.v == 0 || (filter_.phase && step.phase != *filter_.phase)) return;
    StepContext of{.step = step,
                   .graph = reader_.graph(step.graph).value(),
                   .accesses = {},
                   .allocation = reader_.allocation(step.allocation).value(),
                   .rows = {}};
    of.accesses = accesses_of(*of.graph);
    for_each_access(*of.graph, of.accesses, step, [&](const StepAccess& row) {
      of.rows[&of.accesses[row.access]].push_back(row);
    });
    if (query_.value < Value::Executions) {
      add_accesses(of);
    } else {
      add_ops(of);
    }
  }

  NaiveRaster take() { return std::move(out_); }

 private:
  struct StepContext {
    Step step;
    std::shared_ptr<const GraphTemplate> graph;
    std::vector<Access> accesses;
    Allocation allocation;
    std::map<const Access*, std::vector<StepAccess>> rows;
  };
  // The step, token or time axis; null: the raster has none.
  const RasterAxis* when() const {
    for (const RasterAxis* axis : {&like_.x, &like_.y})
      if (is_temporal(axis->axis)) return axis;
    return nullptr;
  }

  // Intersects a range of a step, token or time axis with the filter.
  Range<std::int64_t> cut(Axis axis, Range<std::int64_t> in) const {
    const auto by = [&](const auto& stretch) {
      if (!stretch) return;
      in.from = std::max(in.from, static_cast<std::int64_t>(stretch->from));
      in.to = std::max(in.from, std::min(in.to, static_cast<std::int64_t>(stretch->to)));
    };
    if (axis == Axis::Step) by(filter_.steps);
    if (axis == Axis::Token) by(filter_.tokens);
    if (axis == Axis::Time) by(filter_.time);
    return in;
  }
  Range<std::int64_t> all_of(Axis axis) const { return cut(axis, {INT64_MIN, INT64_MAX}); }

  Range<std::int64_t> pixel(const RasterAxis& axis, std::uint32_t p) const {
    const auto n = axis.range.to - axis.range.from;
    return cut(axis.axis, {axis.range.from + n * p / axis.pixels,
                           axis.range.from + n * (p + 1) / axis.pixels});
  }

  PixelShares pixels(const RasterAxis& axis, const Fact& fact) const {
    if (!is_temporal(axis.axis)) return pixel_shares(index_, axis, fact);
    PixelShares shares;
    for (std::uint32_t p = 0; p < axis.pixels; ++p) {
      const auto in = pixel(axis, p);
      const double of = in.from < in.to ? share_in(axis.axis, *fact.step, fact.op, in) : 0;
      if (of > 0) shares[p] = of;
    }
    return shares;
  }

  void add(const Fact& fact, double amount) {
    double share = 1;
    for (const Axis axis : kAxesOfWhen) {
      if (like_.x.axis == axis || like_.y.axis == axis) continue;
      const auto in = all_of(axis);
      if (in.from > INT64_MIN) share *= share_in(axis, *fact.step, fact.op, in);
    }
    const PixelShares xs = pixels(like_.x, fact), ys = pixels(like_.y, fact);
    double within = 1;
    if (const RasterAxis* axis = when()) {
      within = 0;
      for (const auto& [p, of] : axis == &like_.x ? xs : ys) within += of;
    }
    out_.total += amount * share * within;
    for (const auto& [x, of_x] : xs)
      for (const auto& [y, of_y] : ys)
        out_.cells[std::size_t{y} * like_.x.pixels + x] += amount * share * of_x * of_y;
  }

  static Fact fact_of(const StepContext& of, const Access* access, const StepAccess* row,
                      std::uint32_t op) {
    Fact fact{.graph = of.graph.get(), .step = &of.step, .op = op, .access = access, .file = {}};
    if (access == nullptr) return fact;
    fact.file = row != nullptr ? row->range : access->range;
    fact.address = of.allocation.addresses[access->tensor.v];
    fact.span = size_of(of.graph->tensor(access->tensor)).v;
    if (row == nullptr) return fact;
    fact.expert = row->expert;
    if (access->slot != kNoSlot && part_rule(*of.graph, *access).separate) {
      fact.address += number_of(*access, *row) * access->stride;
      fact.span = access->unit.v;
    }
    return fact;
  }
  static std::uint64_t number_of(const Access& access, const StepAccess& row) {
    return row.expert >= 0 ? static_cast<std::uint64_t>(row.expert)
                           : (row.range.offset - access.range.offset) / access.stride;
  }

  void add_accesses(const StepContext& of) {
    const bool reads = query_.value == Value::BytesRead || query_.value == Value::Reads;
    const bool writes = query_.value == Value::BytesWritten || query_.value == Value::Writes;
    for (const auto& [access, rows] : of.rows) {
      if (!op_passes(filter_, *of.graph, access->op.v, rules_) ||
          !access_passes(filter_, *of.graph, *access) || (reads && access->write) ||
          (writes && !access->write))
        continue;
      for (const StepAccess& row : rows) {
        add(fact_of(of, access, &row, row.op.v),
            query_.value <= Value::BytesWritten ? static_cast<double>(row.touched.v) : 1);
      }
    }
  }

  void add_ops(const StepContext& of) {
    const Step& step = of.step;
    const bool all = step.op_ends.empty() && !step.aborted;
    const std::size_t ran = all ? of.graph->ops.size() : step.op_ends.size();
    for (std::uint32_t op = 0; op < ran; ++op) {
      const Access* main = main_access(*of.graph, of.accesses, op);
      if (!op_passes(filter_, *of.graph, op, rules_)) continue;
      if (filter_.about_accesses() &&
          (main == nullptr || !access_passes(filter_, *of.graph, *main)))
        continue;
      const Ns begin = op == 0 ? step.first_op : step.op_ends.empty() ? Ns{} : step.op_ends[op - 1];
      const double amount = query_.value == Value::Executions ? 1
                            : step.op_ends.empty()
                                ? 0
                                : static_cast<double>((step.op_ends[op] - begin).v);
      add_shared(of, op, main, amount);
    }
  }

  // Divides the amount of an op equally among the parts that its main access touched in the step,
  // times in whole nanoseconds. Without touched parts, it goes to the whole range that the op may
  // touch.
  void add_shared(const StepContext& of, std::uint32_t op, const Access* main, double amount) {
    const bool of_ops = is_op_axis(query_.x.axis) && is_op_axis(query_.y.axis);
    if (of_ops || main == nullptr) return add(fact_of(of, nullptr, nullptr, op), amount);
    std::vector<StepAccess> parts;
    if (const auto rows = of.rows.find(main);
        rows != of.rows.end() && main->slot != kNoSlot && part_rule(*of.graph, *main).separate)
      parts = rows->second;
    if (parts.empty()) return add(fact_of(of, main, nullptr, op), amount);
    const auto count = static_cast<double>(parts.size());
    const double each = query_.value == Value::Time ? std::trunc(amount / count) : amount / count;
    for (std::size_t i = 0; i < parts.size(); ++i)
      add(fact_of(of, main, &parts[i], op), i == 0 ? amount - each * (count - 1) : each);
  }

  const SessionReader& reader_;
  const SessionIndex& index_;
  const RasterQuery& query_;
  const Raster& like_;
  const TraceFilter& filter_;
  const KernelRules rules_;
  NaiveRaster out_;
};

}  // namespace

NaiveRaster naive_raster(const SessionReader& reader, const SessionIndex& index,
                         const RasterQuery& query, const Raster& like) {
  if (query.value == Value::Faults) return naive_fault_raster(reader, index, query, like);
  NaiveRasterBuilder builder(reader, index, query, like);
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    builder.add_step(step);
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return builder.take();
}

}  // namespace tt::test
