#include "tracer/memory/budget_curve.h"

#include <algorithm>

#include "tracer/memory/plan/weight_order.h"

namespace tt {

std::vector<MemoryPrediction> BudgetCurve::predict(const MemoryExchange::Known& known,
                                                   std::span<const std::uint64_t> budgets) {
  if (!known.graph.graph) return {};
  PlanInput input;
  input.compute_seconds = known.compute_seconds;
  input.speeds = known.speeds;
  if (input.speeds.blocks <= 0) input.speeds.blocks = kAssumedDiskSpeed;
  GraphTemplate mapped = known.graph.graph->graph;
  const std::vector<std::uint64_t> addresses = map_weights(mapped);
  const WeightOrder order = weight_order(mapped, known.graph.graph->accesses, addresses);
  std::vector<WeightRange> weights, experts;
  for (const WeightUse& use : order.weights)
    if (!std::ranges::contains(weights, use.range)) weights.push_back(use.range);
  for (const ExpertUse& use : order.experts) {
    input.expert_bytes_per_token += use.slice * std::min(use.per_token, use.experts);
    if (!std::ranges::contains(experts, use.range)) experts.push_back(use.range);
  }
  for (const WeightRange& range : experts) input.expert_bytes += range.file.length;
  input.weights = weights;
  const std::lock_guard lock(mutex_);
  if (graph_ != known.graph.graph) {
    graph_ = known.graph.graph;
    replay_ = FaultReplay(order);
    bytes_.clear();
  }
  // The curve has no kept ranges but those of the plan, which reads the others ahead.
  input.faulted = [&](std::uint64_t room, std::span<const FileRange> kept) {
    const auto around = static_cast<std::uint64_t>(input.speeds.faults.bytes);
    const auto [found, is_new] = bytes_.try_emplace({around, room});
    if (is_new) found->second = replay_.bytes_per_token(around, room, kept);
    return found->second;
  };
  std::vector<MemoryPrediction> curve;
  for (const std::uint64_t budget : budgets) {
    input.budget = budget;
    const MemoryPlan plan = plan_memory(input);
    MemoryPrediction point{.budget = budget,
                           .bytes_per_token = plan.bytes_per_token,
                           .tokens_per_second = plan.tokens_per_second,
                           .plain_bytes_per_token = plan.plain_bytes_per_token,
                           .plain_tokens_per_second = plan.plain_tokens_per_second};
    // More memory is not slower: the replay of page faults is that of a few tokens.
    if (!curve.empty() && curve.back().budget <= budget) {
      const MemoryPrediction& less = curve.back();
      const auto at_least = [](double& value, double other) { value = std::max(value, other); };
      const auto at_most = [](double& value, double other) { value = std::min(value, other); };
      at_most(point.bytes_per_token, less.bytes_per_token);
      at_most(point.plain_bytes_per_token, less.plain_bytes_per_token);
      at_least(point.tokens_per_second, less.tokens_per_second);
      at_least(point.plain_tokens_per_second, less.plain_tokens_per_second);
    }
    curve.push_back(point);
  }
  return curve;
}

}  // namespace tt
