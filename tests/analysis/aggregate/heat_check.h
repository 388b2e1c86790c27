// The second way to what is summed over steps (analysis/aggregate/raster.h, breakdown.h,
// sequentiality.h): every access of every step, one by one, into the cell or the row
// that it belongs to.
#pragma once

#include <cstdint>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/weights/sequentiality.h"
#include "tests/support/sessions/random_session.h"

namespace tt::test {

// Every cell of a picture, and its totals.
void expect_picture(const SessionReader& reader, const SessionIndex& index,
                    const RasterQuery& query);
// Any question about any session.
RasterQuery random_picture(Dice& dice, const SessionIndex& index);

// A stretch of time, of tokens, or both, whose edges lie within steps where they can.
TraceFilter random_cut(Dice& dice, const SessionIndex& index);
// How often ops ran, and their time, by the parts of what they read: on the axes that
// divide them, over time and steps and at once, and in breakdowns.
void expect_parts_shared(const SessionReader& reader, const SessionIndex& index,
                         const TraceFilter& filter);

// Every row and column of a breakdown, of each phase, by a walk for each.
void expect_breakdown(const SessionReader& reader, const SessionIndex& index, Axis by,
                      const TraceFilter& filter = {});
// Against the breakdown, sorted.
void expect_hot_and_cold(const SessionIndex& index, const HotQuery& query);

// Returns how many reads there were.
std::uint64_t expect_read_order(const SessionReader& reader, const SessionIndex& index,
                                const TraceFilter& filter, std::uint64_t gap);

}  // namespace tt::test
