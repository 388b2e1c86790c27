#include "analysis/sql/step_walk.h"

#include <algorithm>

namespace tt::sql {

Done StepWalk::begin(const Conditions& conditions) {
  const auto wanted = [&](std::size_t column) {
    return column == kAbsent ? Wanted{} : conditions.of(column);
  };
  const auto reader = source_.reader();
  if (!reader) return std::unexpected(reader.error());
  const auto steps = (*reader)->step_count();
  if (!steps) return std::unexpected(steps.error());
  const Wanted step = wanted(columns_.step);
  at_ = std::max<std::int64_t>(0, step.from);
  end_ = step.to < *steps ? std::max<std::int64_t>(0, step.to + 1) : std::int64_t{*steps};
  phase_ = wanted(columns_.phase);
  graph_ = wanted(columns_.graph);
  token_ = wanted(columns_.token);
  time_ = wanted(columns_.time);
  return {};
}

Or<std::shared_ptr<const Step>> StepWalk::next() {
  while (at_ < end_) {
    auto step = source_.step(StepId{static_cast<std::uint32_t>(at_++)});
    if (!step || matches(**step)) return step;
  }
  return nullptr;
}

bool StepWalk::matches(const Step& step) const {
  if (!phase_.holds(to_text(step.phase)) || !graph_.holds(std::int64_t{step.graph.v}) ||
      !token_.holds(std::int64_t{step.first_token}))
    return false;
  if (time_.is_open()) return true;
  // Ops without a time have the step's begin. Checks every end, because ends in an untrusted
  // file may be out of order.
  return time_.holds(step.begin.v) || time_.holds(step.first_op.v) ||
         std::ranges::any_of(step.op_ends, [&](Ns end) { return time_.holds(end.v); });
}

}  // namespace tt::sql
