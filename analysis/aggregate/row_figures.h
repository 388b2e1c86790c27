// What the rows of a heat map have in one step or token: mean and quantiles over the units of its x
// axis. The sum of a row depends on the length of a run and on its few slow steps. Which units
// count is decided as for the times of a step (step_times.h): the map and the tables have the same
// figures. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "analysis/aggregate/raster.h"
#include "analysis/aggregate/step_times.h"

namespace tt {

// Of the range of the x axis, and of one phase: that of the filter, else generate if a step in the
// range has it, else that of its first step. The tokens of a prompt share their step equally, so
// each of its steps counts once. Times are of the timed_steps(), and of the units in which the row
// has time; a unit in which a row has no bytes or accesses is a zero.
struct RowFigures {
  struct Row {
    double mean = 0, p5 = 0, median = 0, p95 = 0;
    friend bool operator==(const Row&, const Row&) = default;
  };
  Phase phase = Phase::Generate;
  std::uint64_t units = 0;               // that the figures are over; of a prompt, its steps
  std::uint64_t left_out = 0;            // the others of the phase in the range
  std::optional<TimedSteps> times{};     // of Value::Time
  std::vector<std::optional<Row>> rows;  // by pixel of y; nullopt: no unit has a value
};

// `of`: the raster of the query. Its x axis is Step or Token. The cost is that of a raster with a
// pixel per unit of x.
std::expected<RowFigures, TraceError> row_figures(const SessionIndex& index,
                                                  const RasterQuery& query, const Raster& of,
                                                  const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
