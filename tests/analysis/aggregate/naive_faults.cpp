#include "tests/analysis/aggregate/naive_faults.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/tables/tensor_table.h"
#include "tests/analysis/accesses/naive_filter.h"
#include "tests/analysis/aggregate/naive_axis_pixels.h"

namespace tt::test {
namespace {

class FaultLookup {
 public:
  FaultLookup(NaiveFault& of, const std::vector<Access>& accesses, const Allocation& allocation)
      : fault_(of), accesses_(accesses), allocation_(allocation) {}

  void find() {
    const std::size_t ran = fault_.step.op_ends.size();
    if (ran > 0 && fault_.fault.at >= fault_.step.first_op) {
      // An op runs until it and all ops before it have ended.
      std::uint32_t op = 0;
      for (Ns end{INT64_MIN}; op < ran; ++op)
        if (end = std::max(end, fault_.step.op_ends[op]); end > fault_.fault.at) break;
      if (op < ran) fault_.op = op;
      if (op == ran || !find_access(op)) {
        // Another thread may still have run the previous op.
        if (op > 0 && find_access(op - 1)) fault_.op = op - 1;
      }
    }
    for (std::uint32_t a = 0; !fault_.access && a < accesses_.size(); ++a)
      if (!accesses_[a].range.empty() && contains(a)) take(a);
  }

 private:
  std::uint64_t begin(std::uint32_t access) const {
    const std::uint32_t tensor = accesses_[access].tensor.v;
    return tensor < allocation_.addresses.size() ? allocation_.addresses[tensor] : 0;
  }
  bool contains(std::uint32_t access) const {
    const std::uint64_t from = begin(access), at = fault_.fault.address;
    return from != 0 && at >= from &&
           at - from < size_of(fault_.graph->tensor(accesses_[access].tensor)).v;
  }
  bool find_access(std::uint32_t op) {
    for (std::uint32_t a = 0; a < accesses_.size(); ++a) {
      if (accesses_[a].op.v != op || !contains(a)) continue;
      take(a);
      return true;
    }
    return false;
  }
  void take(std::uint32_t a) {
    const Access& access = accesses_[a];
    const Tensor& tensor = fault_.graph->tensor(access.tensor);
    const std::uint64_t inside = fault_.fault.address - begin(a);
    fault_.access = a;
    fault_.of_access = access;
    if (access.extent == Extent::Experts && access.stride > 0 &&
        inside / access.stride < static_cast<std::uint64_t>(tensor.ne[2]))
      fault_.expert = static_cast<std::int32_t>(inside / access.stride);
    if (!access.range.empty() && tensor.source == Source::Disk)
      fault_.file = {access.range.file, access.range.offset + inside, 1};
  }

  NaiveFault& fault_;
  const std::vector<Access>& accesses_;
  const Allocation& allocation_;
};

// Clips `of` to `in`; returns the share that remains.
double clip(Range<std::int64_t>& of, const Range<std::int64_t>& in) {
  const auto all = static_cast<double>(of.to - of.from);
  of = {std::max(of.from, in.from), std::min(of.to, in.to)};
  return of.from < of.to ? static_cast<double>(of.to - of.from) / all : 0;
}

bool passes(const TraceFilter& filter, const NaiveFault& of, const KernelRules& rules) {
  if (filter.phase && of.step.phase != *filter.phase) return false;
  if (filter.about_ops() && (!of.op || !op_passes(filter, *of.graph, *of.op, rules))) return false;
  return !filter.about_accesses() || (of.access && access_passes(filter, *of.graph, of.of_access));
}

// The pixels of a fault on an axis other than step, token and time.
PixelShares pixels(const SessionIndex& index, const RasterAxis& axis, const NaiveFault& of) {
  if (axis.axis == Axis::All) return range_pixel_shares(axis, 0, 1);
  if (of.graph == nullptr) return {};
  if (axis.axis == Axis::Buffer) {
    if (!of.has_fault ||
        (of.access && of.graph->tensor(of.of_access.tensor).source == Source::Disk))
      return {};
    for (const AxisSection& section : axis.sections) {
      const std::uint64_t inside = of.fault.address - section.origin;
      if (of.fault.address < section.origin ||
          inside >= static_cast<std::uint64_t>(section.range.to - section.range.from))
        continue;
      const auto at = section.range.from + static_cast<std::int64_t>(inside);
      return range_pixel_shares(axis, at, at + 1);
    }
    return {};
  }
  const bool of_ops = is_op_axis(axis.axis) && axis.axis != Axis::Phase;
  if (of_ops && !of.op) return {};
  return pixel_shares(index, axis,
                      {.graph = of.graph.get(),
                       .step = &of.step,
                       .op = of.op.value_or(0),
                       .access = of.access ? &of.of_access : nullptr,
                       .file = of.file,
                       .expert = of.expert});
}

}  // namespace

std::vector<NaiveFault> naive_faults(const SessionReader& reader, FaultKind kind) {
  std::vector<NaiveFault> all;
  const auto add = [&](const StepFaults& of) {
    NaiveFault one{.step = reader.step(of.step).value(), .graph = nullptr};
    if (one.step.graph.v != 0) one.graph = reader.graph(one.step.graph).value();
    if (of.faults.empty()) {
      one.count = of.count;
      one.has_fault = false;
      all.push_back(one);
    }
    const auto accesses = one.graph ? accesses_of(*one.graph) : std::vector<Access>{};
    const Allocation allocation =
        one.step.allocation.v == 0 ? Allocation{} : reader.allocation(one.step.allocation).value();
    for (const PageFault& fault : of.faults) {
      NaiveFault& next = all.emplace_back(one);
      next.fault = fault;
      if (one.graph) FaultLookup(next, accesses, allocation).find();
    }
    return true;
  };
  EXPECT_TRUE(reader.for_each_faults(StepId{0}, UINT32_MAX, add, kind).has_value());
  return all;
}

NaiveRaster naive_fault_raster(const SessionReader& reader, const SessionIndex& index,
                               const RasterQuery& query, const Raster& like) {
  NaiveRaster out;
  out.cells.resize(std::size_t{like.x.pixels} * like.y.pixels);
  const TraceFilter& filter = query.filter;
  for (const NaiveFault& of : naive_faults(reader)) {
    if (!passes(filter, of, kernel_rules_of(index.info()))) continue;
    const Step& step = of.step;
    std::map<Axis, Range<std::int64_t>> when{
        {Axis::Step, {step.id.v, std::int64_t{step.id.v} + 1}},
        {Axis::Token,
         {step.first_token, std::int64_t{step.first_token} + std::max(1U, step.n_tokens)}},
        {Axis::Time, of.has_fault ? Range{of.fault.at.v, of.fault.at.v + 1}
                                  : Range{step.begin.v, std::max(step.end.v, step.begin.v + 1)}}};
    auto amount = static_cast<double>(of.count);
    const auto only = [&](Axis axis, auto stretch) {
      if (stretch)
        amount *= clip(when[axis], {static_cast<std::int64_t>(stretch->from),
                                    static_cast<std::int64_t>(stretch->to)});
    };
    only(Axis::Step, filter.steps);
    only(Axis::Token, filter.tokens);
    only(Axis::Time, filter.time);
    for (const RasterAxis* axis : {&like.x, &like.y})
      if (is_temporal(axis->axis)) only(axis->axis, std::optional(axis->range));
    if (amount == 0) continue;
    out.total += amount;
    const auto on = [&](const RasterAxis& axis) {
      if (!is_temporal(axis.axis)) return pixels(index, axis, of);
      const Range<std::int64_t>& at = when.at(axis.axis);
      return range_pixel_shares(axis, at.from, at.to);
    };
    for (const auto& [x, of_x] : on(like.x))
      for (const auto& [y, of_y] : on(like.y))
        out.cells[x + std::size_t{y} * like.x.pixels] += amount * of_x * of_y;
  }
  return out;
}

}  // namespace tt::test
