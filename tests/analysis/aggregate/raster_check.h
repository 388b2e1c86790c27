// Compares sums over steps (analysis/aggregate/raster.h, breakdown.h, sequentiality.h) with a
// reference implementation that adds each access of each step to its cell or row.
#pragma once

#include <cstdint>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/weights/sequentiality.h"
#include "tests/support/sessions/random_session.h"

namespace tt::test {

// Compares all cells of a raster and its totals.
void expect_raster(const SessionReader& reader, const SessionIndex& index,
                   const RasterQuery& query);
// A random query for any session.
RasterQuery random_raster_query(Dice& dice, const SessionIndex& index);

// A random range of time, tokens or both, with edges within steps where possible.
TraceFilter random_range_filter(Dice& dice, const SessionIndex& index);
// Compares op counts and times divided among the parts that ops read: on the axes that divide
// them, by time, by step and in total, and in breakdowns.
void expect_part_shares(const SessionReader& reader, const SessionIndex& index,
                        const TraceFilter& filter);

// Compares each row and column of a breakdown, in each phase.
void expect_breakdown(const SessionReader& reader, const SessionIndex& index, Axis by,
                      const TraceFilter& filter = {});
// Compares with the sorted breakdown.
void expect_hot_cold(const SessionIndex& index, const HotQuery& query);

// Returns the number of reads.
std::uint64_t expect_read_order(const SessionReader& reader, const SessionIndex& index,
                                const TraceFilter& filter, std::uint64_t gap);

}  // namespace tt::test
