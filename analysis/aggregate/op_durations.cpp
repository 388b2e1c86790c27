#include "analysis/aggregate/op_durations.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/fields/fields.h"

namespace tt {

static Fields<OpDurationBin> fields_of(const OpDurationBin*) {
  return Fields<OpDurationBin>("OpDurationBin")
      .add("from_ns", "durations of at least this, and less than twice as much",
           &OpDurationBin::from)
      .add("executions", "number of executed ops", &OpDurationBin::executions)
      .add("time_ns", "the sum of their durations", &OpDurationBin::time);
}

Fields<OpDurations> fields_of(const OpDurations*) {
  return Fields<OpDurations>("OpDurations")
      .add("executions", "number of executed ops with a duration", &OpDurations::executions)
      .add("bins", "ascending, also the empty ones between others", &OpDurations::bins);
}

std::expected<OpDurations, TraceError> op_durations(const SessionIndex& index,
                                                    const TraceFilter& filter,
                                                    const ContinueCheck& keep_going) {
  // By the position of the highest bit of a duration.
  std::array<OpDurationBin, std::numeric_limits<std::int64_t>::digits> all{};
  const TraceMatcher matcher(index, filter);
  StepShares shares(index, filter.phase, StepShares::Times::Yes);
  StepWindow window = window_of(index, filter);
  const Range<std::uint64_t> steps = window.steps;
  for (std::uint64_t i = steps.from; i < steps.to; ++i) {
    if (i % 16 == 0 && !keep_going()) return std::unexpected(cancelled_error());
    window.steps = {i, i + 1};
    shares.visit(window, [&](const SeriesShare& share) {
      const TemplateOutline& outline = *share.series.outline;
      for (std::uint32_t op = share.first_op; op < share.end_op; ++op) {
        // Signed: a damaged file may have negative durations.
        const auto ns = static_cast<std::int64_t>(share.op_ns[op]);
        if (ns <= 0 || share.share_of(op) == 0 || !matcher.time(outline, outline.ops[op])) continue;
        const int highest_bit = std::bit_width(static_cast<std::uint64_t>(ns)) - 1;
        OpDurationBin& bin = all[static_cast<std::size_t>(highest_bit)];
        ++bin.executions;
        // Wraps: in a damaged file, the sum may be of any size.
        bin.time =
            Ns{static_cast<std::int64_t>(static_cast<std::uint64_t>(bin.time.v) + share.op_ns[op])};
      }
    });
  }
  OpDurations out;
  const auto has_ops = [](const OpDurationBin& bin) { return bin.executions > 0; };
  const auto first = std::ranges::find_if(all, has_ops);
  const auto last = std::find_if(all.rbegin(), all.rend(), has_ops).base();
  for (auto bin = first; bin < last; ++bin) {
    bin->from = Ns{std::int64_t{1} << (bin - all.begin())};
    out.executions += bin->executions;
    out.bins.push_back(*bin);
  }
  return out;
}

}  // namespace tt
