#include "analysis/sql/step_walk.h"

#include <algorithm>

namespace tt::sql {

Status StepWalk::begin(const Conditions& conditions) {
  const auto constraint = [&](std::size_t column) {
    return column == kAbsent ? ColumnConstraint{} : conditions.of(column);
  };
  const auto reader = source_.reader();
  if (!reader) return std::unexpected(reader.error());
  const auto steps = (*reader)->step_count();
  if (!steps) return std::unexpected(steps.error());
  const ColumnConstraint step = constraint(columns_.step);
  at_ = std::max<std::int64_t>(0, step.from);
  end_ = step.to < *steps ? std::max<std::int64_t>(0, step.to + 1) : std::int64_t{*steps};
  phase_ = constraint(columns_.phase);
  graph_ = constraint(columns_.graph);
  token_ = constraint(columns_.token);
  time_ = constraint(columns_.time);
  return {};
}

Expected<std::shared_ptr<const Step>> StepWalk::next() {
  while (at_ < end_) {
    auto step = source_.step(StepId{static_cast<std::uint32_t>(at_++)});
    if (!step || matches(**step)) return step;
  }
  return nullptr;
}

bool StepWalk::matches(const Step& step) const {
  if (!phase_.contains(to_text(step.phase)) || !graph_.contains(std::int64_t{step.graph.v}) ||
      !token_.contains(std::int64_t{step.first_token}))
    return false;
  if (time_.is_open()) return true;
  // Ops without a time have the step's begin. Checks every end, because ends in an untrusted
  // file may be out of order.
  return time_.contains(step.begin.v) || time_.contains(step.first_op.v) ||
         std::ranges::any_of(step.op_ends, [&](Ns end) { return time_.contains(end.v); });
}

}  // namespace tt::sql
