// The steps of a session inside a window of steps, tokens or time, grouped by series, so
// that sums use what the steps of a series have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/index/session_index.h"

namespace tt {

// Steps [from, to) of a series: complete steps, or one partial step. Valid only during the
// callback.
struct SeriesShare {
  const Series& series;
  std::uint32_t number;                  // index of the series
  std::size_t from, to;                  // indices within the series
  double share;                          // share of each step, if `op_shares` is empty
  std::span<const double> op_shares;     // per op
  std::span<const std::uint64_t> op_ns;  // per op, of complete steps; empty: not requested
  std::uint32_t first_op, end_op;        // only these ops have a share

  double share_of(std::uint32_t op) const { return op_shares.empty() ? share : op_shares[op]; }
  double steps() const { return static_cast<double>(to - from); }
  double parts(std::uint32_t rule) const {
    return static_cast<double>(series.parts_before(to)[rule] - series.parts_before(from)[rule]);
  }
  double hits(std::uint32_t rule) const {
    return static_cast<double>(series.hits_before(to)[rule] - series.hits_before(from)[rule]);
  }
};

// The conditions are combined with AND. `steps` is always set.
struct StepWindow {
  Range<std::uint64_t> steps{};
  std::optional<Range<std::uint64_t>> tokens{};
  std::optional<Range<std::int64_t>> time{};
};
// The window of the step conditions of a filter.
StepWindow window_of(const SessionIndex& index, const TraceFilter& filter);
// The intersection of both windows.
StepWindow within(StepWindow a, const StepWindow& b);

// Has the lifetime of one query. Consecutive windows are cheapest.
class StepShares {
 public:
  enum class Times : bool { No, Yes };  // whether op_ns is filled in
  StepShares(const SessionIndex& index, std::optional<Phase> phase, Times times)
      : index_(index),
        phase_(phase),
        times_(times),
        op_times_(index),
        places_(index.series().size()) {}

  using Visit = std::function<void(const SeriesShare&)>;
  void visit(const StepWindow& window, const Visit& visit);

 private:
  struct Place {
    std::uint64_t step = 0;
    std::size_t place = 0;  // index in the series of its first step >= `step`
  };
  std::size_t place_at(std::uint32_t series, std::uint64_t step);
  void whole(Range<std::uint64_t> steps, const Visit& visit);
  void partly(std::uint32_t step, const StepWindow& window, const Visit& visit);

  const SessionIndex& index_;
  const std::optional<Phase> phase_;
  const Times times_;
  OpTimes op_times_;
  std::vector<Place> places_;
  std::vector<double> op_shares_;
};

}  // namespace tt
