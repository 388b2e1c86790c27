// What the steps of a session did within a window of steps, tokens or time: per
// series, so that a sum over them is a sum over what the series has in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/index/session_index.h"

namespace tt {

// Steps [from, to) of a series: whole ones, or one of which a part counts. Valid
// during the call that hands it over.
struct SeriesShare {
  const Series& series;
  std::uint32_t number;                  // of the series
  std::size_t from, to;                  // places in it
  double share;                          // of each step, where `op_shares` is empty
  std::span<const double> op_shares;     // per op
  std::span<const std::uint64_t> op_ns;  // per op, of the whole steps; empty: not asked for
  std::uint32_t first_op, end_op;        // only these have a share

  double share_of(std::uint32_t op) const { return op_shares.empty() ? share : op_shares[op]; }
  double steps() const { return static_cast<double>(to - from); }
  double parts(std::uint32_t rule) const {
    return static_cast<double>(series.parts_before(to)[rule] - series.parts_before(from)[rule]);
  }
  double hits(std::uint32_t rule) const {
    return static_cast<double>(series.hits_before(to)[rule] - series.hits_before(from)[rule]);
  }
};

// All of these hold. `steps` is always there.
struct StepWindow {
  Stretch<std::uint64_t> steps{};
  std::optional<Stretch<std::uint64_t>> tokens{};
  std::optional<Stretch<std::int64_t>> time{};
};
// Of what a filter says about steps.
StepWindow window_of(const SessionIndex& index, const TraceFilter& filter);
// What lies in both.
StepWindow within(StepWindow a, const StepWindow& b);

// Lives as long as one question. Windows that follow one another are cheapest.
class StepShares {
 public:
  enum class Times : bool { No, Yes };  // whether op_ns is wanted
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
    std::uint64_t step =
        0;  // all steps of the series before `place` are before it, the rest is not
    std::size_t place = 0;
  };
  std::size_t place_at(std::uint32_t series, std::uint64_t step);
  void whole(Stretch<std::uint64_t> steps, const Visit& visit);
  void partly(std::uint32_t step, const StepWindow& window, const Visit& visit);

  const SessionIndex& index_;
  const std::optional<Phase> phase_;
  const Times times_;
  OpTimes op_times_;
  std::vector<Place> places_;
  std::vector<double> op_shares_;
};

}  // namespace tt
